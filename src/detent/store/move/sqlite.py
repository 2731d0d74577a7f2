"""The verb of moves on SQLite."""

from __future__ import annotations

from detent.model.clock import from_micros
from detent.model.move_records import MoveRow
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import VerbBase

__all__ = ["SqliteDatabaseMoves", "move_row"]

_FIELDS = MoveRow.__struct_fields__
_MOVES = f"SELECT {', '.join(_FIELDS)} FROM detent_database_move ORDER BY direction"


class SqliteDatabaseMoves(VerbBase):
    """The verb of moves."""

    def database_moves(self) -> list[MoveRow]:
        return [move_row(row) for row in self._db.rows(_MOVES)]


def move_row(row: Row) -> MoveRow:
    """Return a row of the table as a record."""
    fields = dict(zip(_FIELDS, row, strict=True))
    times = {name: from_micros(fields[name]) for name in ("began_at", "ended_at") if fields[name] is not None}
    return MoveRow(**fields | times)
