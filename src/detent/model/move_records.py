"""Records of moves of a whole database."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

__all__ = ["Direction", "MoveProgress", "MoveReport", "MoveRow", "MoveState", "NewMove"]

Direction = Literal["in", "out"]
MoveState = Literal["moving", "moved", "loading", "arrived"]


class NewMove(Struct, frozen=True, kw_only=True):
    """A move of a database into another one. `identity` is that of the source."""

    move_id: str
    source: str
    target: str
    identity: str
    actor: str
    reason: str | None = None


class MoveRow(Struct, frozen=True, kw_only=True):
    """What a database knows about its move. Out of it: `moving` until the other database has everything, then `moved`.
    Into it: `loading`, then `arrived`. `place` is the other database, without a password."""

    direction: Direction
    move_id: str
    state: MoveState
    place: str
    identity: str
    actor: str
    reason: str | None
    began_at: datetime
    ended_at: datetime | None

    @property
    def is_closed(self) -> bool:
        """Whether the database takes no writes because of it."""
        return self.state != "arrived"


class MoveProgress(Struct, frozen=True, kw_only=True):
    """How far a move has come: what is being done, and how many of all rows are copied."""

    step: str
    rows: int = 0
    total: int = 0


class MoveReport(Struct, frozen=True, kw_only=True):
    """A move that has ended.

    - `tables`: how many rows each table of the target has, by name
    - `copied`: the rows that this call has copied; fewer than there are if it continued a move that was interrupted
    - `seconds`: how long this call took
    - `left_behind`: tables of the user with an attached lifecycle, which are not moved, as `lifecycle: table`
    """

    source: str
    target: str
    tables: dict[str, int]
    copied: int
    seconds: float
    left_behind: tuple[str, ...]
