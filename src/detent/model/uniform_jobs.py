"""New jobs that differ only by id and arguments, as those of one `enqueue_many` do.

Creating an object for each of them would be most of the cost of sending them, and the store would only take the objects
apart again, column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from msgspec.structs import replace

from detent.model.records import NewJob

__all__ = ["UniformJobs", "as_uniform", "ids_of", "representatives"]


class UniformJobs(Sequence[NewJob]):
    """A sequence of new jobs without keys: each is a copy of `prototype` with its own id and payload."""

    __slots__ = ("ids", "payloads", "prototype")

    def __init__(self, prototype: NewJob, ids: Sequence[int], payloads: Sequence[str]) -> None:
        self.prototype = prototype
        self.ids = ids
        self.payloads = payloads

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[NewJob]:
        for job_id, payload in zip(self.ids, self.payloads, strict=True):
            yield replace(self.prototype, id=job_id, payload=payload)

    @overload
    def __getitem__(self, place: int) -> NewJob: ...

    @overload
    def __getitem__(self, place: slice) -> UniformJobs: ...

    def __getitem__(self, place: int | slice) -> NewJob | UniformJobs:
        if isinstance(place, slice):
            return UniformJobs(self.prototype, self.ids[place], self.payloads[place])
        return replace(self.prototype, id=self.ids[place], payload=self.payloads[place])


def as_uniform(items: Sequence[NewJob]) -> Sequence[NewJob]:
    """Return the same jobs, as `UniformJobs` if they are uniform. Fingerprints of jobs without a key do not count."""
    if len(items) < 2 or isinstance(items, UniformJobs) or items[0].key is not None or items[0].unique_pending:
        return items
    prototype = replace(items[0], id=0, payload="", fingerprint="")
    if any(replace(item, id=0, payload="", fingerprint="") != prototype for item in items):
        return items
    return UniformJobs(prototype, [item.id for item in items], [item.payload for item in items])


def representatives(items: Sequence[NewJob]) -> Sequence[NewJob]:
    """Return jobs that stand for all of them, apart from ids and arguments."""
    return (items.prototype,) if isinstance(items, UniformJobs) else items


def ids_of(items: Sequence[NewJob]) -> Sequence[int]:
    """Return the ids, in order."""
    return items.ids if isinstance(items, UniformJobs) else [item.id for item in items]
