"""The verb of moves on PostgreSQL."""

from __future__ import annotations

from detent.model.move_records import MoveRow
from detent.store.postgres.statement import Statement, named
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresDatabaseMoves"]

_FIELDS = MoveRow.__struct_fields__
_MOVES = f"SELECT {', '.join(_FIELDS)} FROM detent.database_moves_v1()"


def database_moves() -> Statement[list[MoveRow]]:
    return Statement(_MOVES, (), lambda rows: [MoveRow(**named(_FIELDS, row)) for row in rows], writes=False)


class PostgresDatabaseMoves(VerbBase):
    """The verb of moves."""

    database_moves = runs(database_moves)
