"""What a flusher writes in one transaction, and how a batch that was refused is taken apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from detent.model.limit_records import Charge
from detent.model.records import Abort, Finish, NewEvent

__all__ = ["Batch", "instead_of"]

Item = Charge | NewEvent | Finish | Abort

_REFUSED = "the database refused to record how the attempt ended: "
_DELAY = 1.0


@dataclass(slots=True)
class Batch:
    """Items in the order in which they are written: charges, events, endings."""

    events: list[NewEvent] = field(default_factory=list)
    finishes: list[Finish] = field(default_factory=list)
    aborts: list[Abort] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    leases: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many items there are."""
        return len(self.charges) + len(self.events) + len(self.finishes) + len(self.aborts)

    @property
    def items(self) -> list[Item]:
        """All items, in their order."""
        return [*self.charges, *self.events, *self.finishes, *self.aborts]

    def halves(self) -> list[Batch]:
        """Return the same items in two batches, or nothing if there is one item only. All items of a job stay together
        until it is the only job left."""
        items = self.items
        if len(items) < 2:
            return []
        jobs = list(dict.fromkeys(item.job_id for item in items))
        if len(jobs) == 1:
            middle = len(items) // 2
            return [_batch(items[:middle]), _batch(items[middle:])]
        first = frozenset(jobs[: len(jobs) // 2])
        return [
            _batch(item for item in items if item.job_id in first),
            _batch(item for item in items if item.job_id not in first),
        ]


def _batch(items: Iterable[Item]) -> Batch:
    batch = Batch()
    for item in items:
        match item:
            case Charge():
                batch.charges.append(item)
            case NewEvent():
                batch.events.append(item)
            case Finish():
                batch.finishes.append(item)
            case Abort():
                batch.aborts.append(item)
    return batch


def instead_of(item: Item, error: BaseException) -> Batch:
    """Return what to write in place of an item that was refused by itself: an ending becomes a crash that says why, so
    that the attempt counts and a person can see the cause. There is nothing in place of the rest, or of that crash."""
    if isinstance(item, Abort) and (item.error or "").startswith(_REFUSED):
        return Batch()
    if not isinstance(item, Finish | Abort):
        return Batch()
    said = f"{_REFUSED}{type(error).__name__}: {error}"
    return Batch(aborts=[Abort(job_id=item.job_id, attempt=item.attempt, outcome="crashed", error=said, delay=_DELAY)])
