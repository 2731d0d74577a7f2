"""Places in streams: what a subscriber has seen, as the id of the last message that it got.

A place decides by itself which lines it still wants. So a subscriber may read lines from the database and then from a
poller that is ahead of it or behind it, and gets every line once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from detent.errors import InvalidInput
from detent.model.follow_records import ChangePlace
from detent.model.record_cursor import RecordCursor

__all__ = ["FollowPlace", "Item", "LinePlace", "Page", "Place", "RecordPlace"]

_FOLLOW = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,3})\.(\d{1,18})")


class Item(msgspec.Struct, frozen=True):
    """A line of a stream: the name and the JSON of its message, and what places compare."""

    event: str
    data: bytes
    seq: int = 0
    """The number of an event of a job."""
    n: int = 0
    """The number of a line of the record."""
    step: tuple[int, int] | None = None
    """Attempt and rank of an ordinary step of an attempt."""
    tenant: str = ""


class Page(msgspec.Struct, frozen=True):
    """Lines after a place, in order."""

    items: Sequence[Item] = ()
    more: bool = False
    """Whether there may be more lines already."""
    ended: bool = False
    """Whether the subject is at rest: no further line comes by itself."""
    gone: bool = False
    """Whether the subject was deleted."""
    snapshot: bytes | None = None
    """The subject as it is now, as JSON."""
    reset: str = ""
    """Why lines before this page may be missing."""
    restart: Place | None = None
    """Where to continue after a reset, if not at the place that was given."""
    examined: int = 0
    decided: int = 0


class Place(Protocol):
    """What a subscriber has seen."""

    @property
    def text(self) -> str:
        """The place as the id of a message."""
        ...

    def wants(self, item: Item) -> bool:
        """Return whether the line has not been seen."""
        ...

    def past(self, item: Item, page: Page) -> Place:
        """Return the place after a line of a page."""
        ...

    def through(self, page: Page) -> Place:
        """Return the place after a whole page."""
        ...


class RecordPlace(msgspec.Struct, frozen=True):
    """A place in the record."""

    cursor: RecordCursor

    @property
    def text(self) -> str:
        """The cursor of `record_feed`."""
        return self.cursor.text

    def wants(self, item: Item) -> bool:
        """Return whether the line has not been seen."""
        return self.cursor.wants(item.n)

    def past(self, item: Item, page: Page) -> RecordPlace:
        """Return the place after a line of a page."""
        return RecordPlace(self.cursor.past(item.n, page.decided))

    def through(self, page: Page) -> RecordPlace:
        """Return the place after a whole page."""
        return RecordPlace(self.cursor.through(page.examined, page.decided))


class FollowPlace(msgspec.Struct, frozen=True):
    """A place in the events and changes of a job."""

    seq: int = 0
    change: ChangePlace = ChangePlace()

    @classmethod
    def parse(cls, text: str) -> FollowPlace:
        """Return the place that an id says. `InvalidInput`."""
        found = _FOLLOW.fullmatch(text) if text.isascii() else None
        if found is None:
            raise InvalidInput("Last-Event-ID", repr(text[:80]), "the id of a message of this stream")
        seq, attempt, rank, n = map(int, found.groups())
        return cls(seq, ChangePlace(attempt, rank - 1, n))

    @property
    def text(self) -> str:
        """Event, attempt, step and line of the record. Steps count from 1 here: 0 is before the first."""
        place = self.change
        return f"{self.seq}.{place.attempt}.{place.rank + 1}.{place.n}"

    def wants(self, item: Item) -> bool:
        """Return whether the line has not been seen."""
        if item.step is not None:
            return item.step > (self.change.attempt, self.change.rank)
        return item.n > self.change.n if item.n else item.seq > self.seq

    def past(self, item: Item, _: Page) -> FollowPlace:
        """Return the place after a line of a page."""
        place = self.change
        if item.step is not None:
            return FollowPlace(self.seq, ChangePlace(*item.step, place.n))
        if item.n:
            return FollowPlace(self.seq, ChangePlace(place.attempt, place.rank, item.n))
        return FollowPlace(item.seq, place)

    def through(self, _: Page) -> FollowPlace:
        """Return this place: its lines have no gaps."""
        return self


class LinePlace(msgspec.Struct, frozen=True):
    """A place in the changes of one entity."""

    n: int = 0

    @classmethod
    def parse(cls, text: str) -> LinePlace:
        """Return the place that an id says. `InvalidInput`."""
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InvalidInput("Last-Event-ID", repr(text[:80]), "the id of a message of this stream")
        return cls(int(text))

    @property
    def text(self) -> str:
        """The number of the line."""
        return str(self.n)

    def wants(self, item: Item) -> bool:
        """Return whether the line has not been seen."""
        return item.n > self.n

    def past(self, item: Item, _: Page) -> LinePlace:
        """Return the place after a line of a page."""
        return LinePlace(item.n)

    def through(self, _: Page) -> LinePlace:
        """Return this place: its lines have no gaps."""
        return self
