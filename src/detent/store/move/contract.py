"""Moving a whole database: the verb that says whether it moves, and what the mover does to both databases.

The source is closed first: from then on every write is refused with `DatabaseMoved`, by triggers that exist only while
the database is closed. The target is closed too, until it has everything. So at no moment do both take writes:

    source  open ──► moving ─────────────────────────► moved
    target  empty ─────────► loading ──────────────────────────► arrived (open)

Each step is a transaction, and is harmless if it is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from detent.model.move_records import MoveRow, NewMove
from detent.store.verb import verb

if TYPE_CHECKING:  # only a move reads the migrations
    from detent.store.move.tables import Table

__all__ = ["Activity", "Counters", "Key", "MovableDatabase", "MoveVerbs", "Place", "Row"]

Row: TypeAlias = tuple[Any, ...]
"""A row as SQLite stores it: times are microseconds since 1970, booleans 0 or 1, and lists of ids JSON."""
Key: TypeAlias = Sequence[Any]
Counters: TypeAlias = Mapping[str, int]
"""The next number of each counter: `ids`, `lanes`, and those of numbered tables by the table's name."""


class MoveVerbs(Protocol):
    """The verb of moves."""

    @verb("viewer")
    def database_moves(self) -> list[MoveRow]:
        """Return the move by which this database was filled, and the one into another database; at most one of each."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """How far a table has come: how many rows were copied, the key of the last one, and whether these are all."""

    copied: int = 0
    last_key: Key | None = None
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Activity:
    """What forbids closing a database: running jobs (the first few ids, and how many), and live workers by name."""

    running: tuple[int, ...]
    running_count: int
    workers: tuple[str, ...]

    @property
    def is_any(self) -> bool:
        """Whether there is any of it."""
        return bool(self.running_count or self.workers)


class MovableDatabase(Protocol):
    """What a move does to a database. `DatabaseError` for what the database refuses; the login owns the tables."""

    @property
    def name(self) -> str:
        """The database for messages, without secrets."""
        ...

    def is_of_this_release(self) -> bool:
        """Return whether the schema, with its installed parts, is that of this release."""
        ...

    def has_schema(self) -> bool:
        """Return whether Detent's schema is there at all. Creates nothing."""
        ...

    def activity(self) -> Activity:
        """Return what runs."""
        ...

    def table_with_rows(self) -> str | None:
        """Return the name of a table that has rows, other than those that a new database has; None if it is empty."""
        ...

    # -- the source --------------------------------------------------------------------------------------------

    def close_out(self, move: NewMove) -> Activity | None:
        """Close the source and put the move on record, if nothing runs; otherwise return what runs, with nothing
        changed. `DatabaseBusy` if open transactions do not end."""
        ...

    def cancel(self, actor: str, reason: str | None) -> bool:
        """Open a source that is still moving again, on record. Return whether it was moving."""
        ...

    def mark_moved(self, move_id: str) -> bool:
        """Let the source stay closed for good, on record. Return False if this move is no longer its move."""
        ...

    # -- the target --------------------------------------------------------------------------------------------

    def begin_in(self, move: NewMove, *, wiped: bool) -> str | None:
        """Close the target, take its guards away, and delete what a new database has. If it has other rows, return the
        name of a table with nothing changed; with `wiped`, delete all rows first."""
        ...

    def places(self) -> dict[str, Place]:
        """Return how far each table has come."""
        ...

    def write(self, move_id: str, table: Table, rows: Sequence[Row], was: Place, place: Place) -> bool:
        """Insert rows and note the new place in one transaction. Return False, with nothing written, if the table is no
        longer at the place `was`, or if another move loads the database."""
        ...

    def finish_load(self, move_id: str, counters: Counters) -> None:
        """Set the counters and put the guards back. The database stays closed."""
        ...

    def open_in(self, move_id: str) -> bool:
        """Open the target, on record. Return False if this move is no longer its move."""
        ...

    # -- both --------------------------------------------------------------------------------------------------

    def rows(self, table: Table, after: Key | None) -> AbstractContextManager[Iterator[Row]]:
        """Read the rows of a table in the order of their keys, those after a key, in bounded memory."""
        ...

    def counts(self, tables: Sequence[Table]) -> dict[str, int]:
        """Count the rows of tables."""
        ...

    def counters(self) -> dict[str, int]:
        """Return the next number of each counter that this database keeps."""
        ...

    def attached(self) -> list[tuple[str, str]]:
        """Return the attached lifecycles with their tables, which are the user's own and are not moved."""
        ...
