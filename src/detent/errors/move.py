"""Errors of moving a whole database, and of one that was moved."""

from __future__ import annotations

from dataclasses import dataclass

from detent.errors.base import Refused
from detent.errors.database import DatabaseReadOnly

__all__ = ["DatabaseMoved", "MoveRefused"]


@dataclass(eq=False)
class DatabaseMoved(DatabaseReadOnly):
    """The database takes no writes because of `detent move`; nothing was written. `state` is `moving` while it is
    copied to `place`, `moved` after that, and `loading` while it is filled from `place`. `since` is when that began."""

    state: str
    place: str
    since: str

    def _says(self) -> str:
        return f"the database takes no writes, since {self.condition}"

    @property
    def condition(self) -> str:
        """What became of the database, as part of a sentence."""
        match self.state:
            case "moved":
                return f"it was moved to {self.place} at {self.since}"
            case "moving":
                return f"it has been moving to {self.place} since {self.since}"
            case _:
                return f"it has been filled from {self.place} since {self.since}, and not everything is there yet"


@dataclass(eq=False)
class MoveRefused(Refused):
    """A database cannot be moved to that place, or not now."""

    source: str
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.source} cannot be moved: {self.found}; {self.instead}"
