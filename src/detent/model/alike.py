"""New jobs that differ by their ids and arguments alone, as many that are sent at once do.

To have one object for each of them is most of what it costs to send them, and whoever writes them down would only take
the objects apart again, column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from msgspec.structs import replace

from detent.model.records import NewJob

__all__ = ["AlikeJobs", "gathered", "ids_of", "kinds"]


class AlikeJobs(Sequence[NewJob]):
    """A sequence of new jobs without keys: each is `like` that one, with an id and a payload of its own."""

    __slots__ = ("ids", "like", "payloads")

    def __init__(self, like: NewJob, ids: Sequence[int], payloads: Sequence[str]) -> None:
        self.like = like
        self.ids = ids
        self.payloads = payloads

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[NewJob]:
        for job_id, payload in zip(self.ids, self.payloads, strict=True):
            yield replace(self.like, id=job_id, payload=payload)

    @overload
    def __getitem__(self, place: int) -> NewJob: ...

    @overload
    def __getitem__(self, place: slice) -> AlikeJobs: ...

    def __getitem__(self, place: int | slice) -> NewJob | AlikeJobs:
        if isinstance(place, slice):
            return AlikeJobs(self.like, self.ids[place], self.payloads[place])
        return replace(self.like, id=self.ids[place], payload=self.payloads[place])


def gathered(items: Sequence[NewJob]) -> Sequence[NewJob]:
    """The same jobs, as `AlikeJobs` where they are. Without a key the fingerprint says nothing."""
    if len(items) < 2 or isinstance(items, AlikeJobs) or items[0].key is not None or items[0].unique_pending:
        return items
    like = replace(items[0], id=0, payload="", fingerprint="")
    if any(replace(item, id=0, payload="", fingerprint="") != like for item in items):
        return items
    return AlikeJobs(like, [item.id for item in items], [item.payload for item in items])


def kinds(items: Sequence[NewJob]) -> Sequence[NewJob]:
    """At least one job of each kind among them: all that matters but ids and arguments can be seen in these."""
    return (items.like,) if isinstance(items, AlikeJobs) else items


def ids_of(items: Sequence[NewJob]) -> Sequence[int]:
    """The ids, in order."""
    return items.ids if isinstance(items, AlikeJobs) else [item.id for item in items]
