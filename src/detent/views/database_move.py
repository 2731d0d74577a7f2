"""Why a database takes no writes: it moves to another one, or has moved."""

from __future__ import annotations

from detent.model.move_records import MoveRow
from detent.store.contract import Verbs

__all__ = ["condition", "why_closed"]


def why_closed(verbs: Verbs) -> str | None:
    """Return why nothing happens to the jobs of a database that is closed, in one sentence; None if it is open."""
    return next((f"nothing runs here: {condition(row)}" for row in verbs.database_moves() if row.is_closed), None)


def condition(row: MoveRow) -> str:
    """Return what became of a database that is closed, as part of a sentence."""
    began = f"at {row.began_at.isoformat()} by {row.actor}"
    match row.state:
        case "moved":
            return f"this database was moved to {row.place}, and its jobs go on there"
        case "moving":
            return f"the move of this database to {row.place} began {began} and has not ended (`detent move`)"
        case _:
            return f"this database is being filled from {row.place}, which began {began} (`detent move`)"
