"""What a flusher writes in one transaction, and how a refused batch is split."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from detent.model.limit_records import Charge
from detent.model.records import Abort, Finish, NewEvent
from detent.model.stream_records import STREAM

__all__ = ["WriteBatch", "replace_refused"]

Item = Charge | NewEvent | Finish | Abort

_REFUSED = "the database refused to record how the attempt ended: "
_DELAY = 1.0
_STREAM_LINE_MAX = 16 * 1024


@dataclass(slots=True)
class WriteBatch:
    """Items in the order in which they are written: charges, events, endings."""

    events: list[NewEvent] = field(default_factory=list)
    finishes: list[Finish] = field(default_factory=list)
    aborts: list[Abort] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    leases: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The number of items."""
        return len(self.charges) + len(self.events) + len(self.finishes) + len(self.aborts)

    @property
    def items(self) -> list[Item]:
        """All items, in the order in which they are written."""
        return [*self.charges, *self.events, *self.finishes, *self.aborts]

    def join_stream(self, line: NewEvent) -> bool:
        """Append text to the last event if that is of the same stream; return whether it was appended. A model writes a
        few letters at a time, which would be an event each."""
        last = self.events[-1] if self.events else None
        if (
            last is None
            or last.level != STREAM
            or (last.job_id, last.attempt, _stream_of(last)) != (line.job_id, line.attempt, _stream_of(line))
            or len(last.message) + len(line.message) > _STREAM_LINE_MAX // 4
        ):
            return False
        self.events[-1] = replace(last, message=last.message + line.message)
        return True

    def halves(self) -> list[WriteBatch]:
        """Return the same items in two batches; nothing if there is only one item. All items of a job stay together
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


def _stream_of(line: NewEvent) -> str:
    """Return the part of its payload that names the stream; the number of the line comes after it."""
    return (line.payload or "").rpartition(',"n":')[0]


def _batch(items: Iterable[Item]) -> WriteBatch:
    batch = WriteBatch()
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


def replace_refused(item: Item, error: BaseException) -> WriteBatch:
    """Return what to write in place of an item that the database refused.

    An ending becomes a crash with the cause as its error, so that the attempt counts and a person can see why. Other
    items, and that crash, are replaced by nothing.
    """
    if isinstance(item, Abort) and (item.error or "").startswith(_REFUSED):
        return WriteBatch()
    if not isinstance(item, Finish | Abort):
        return WriteBatch()
    said = f"{_REFUSED}{type(error).__name__}: {error}"
    return WriteBatch(
        aborts=[Abort(job_id=item.job_id, attempt=item.attempt, outcome="crashed", error=said, delay=_DELAY)]
    )
