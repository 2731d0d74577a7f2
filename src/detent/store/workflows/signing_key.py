"""The secret with which tokens of signals are signed."""

from __future__ import annotations

from detent.errors import DatabaseError

__all__ = ["checked_key"]

_MISSING = "its secret for tokens of signals is missing; restore the row of the table signal_key from a backup"


def checked_key(found: str | None, database: str) -> bytes:
    """Return the secret as bytes. `DatabaseError` if the database has none."""
    if found is None:
        raise DatabaseError(database, _MISSING)
    return bytes.fromhex(found)
