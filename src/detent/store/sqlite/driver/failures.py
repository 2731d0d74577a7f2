"""What sqlite3 raises, in Detent's own words. No driver error leaves this room."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from detent.errors import (
    DatabaseBusy,
    DatabaseError,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnreachable,
    GuardViolation,
    InvalidInput,
    NotADatabase,
    OutcomeUnknown,
    SchemaMissing,
)

__all__ = ["translated", "translating", "unheld", "values_checked"]

_PRIMARY = 0xFF

_BY_CODE: dict[int, type[DatabaseError]] = {
    sqlite3.SQLITE_BUSY: DatabaseBusy,
    sqlite3.SQLITE_LOCKED: DatabaseBusy,
    sqlite3.SQLITE_PROTOCOL: DatabaseBusy,
    sqlite3.SQLITE_INTERRUPT: DatabaseBusy,  # broken off
    sqlite3.SQLITE_READONLY: DatabaseReadOnly,
    sqlite3.SQLITE_FULL: DatabaseFull,
    sqlite3.SQLITE_CANTOPEN: DatabaseUnreachable,
    sqlite3.SQLITE_PERM: DatabaseUnreachable,
    sqlite3.SQLITE_IOERR: DatabaseUnreachable,
    sqlite3.SQLITE_NOTADB: NotADatabase,
    sqlite3.SQLITE_CORRUPT: NotADatabase,
    sqlite3.SQLITE_CONSTRAINT: GuardViolation,
}


def translated(error: sqlite3.Error, database: str, *, committing: bool = False) -> DatabaseError:
    """The same failure as an error of Detent's. An I/O error while committing leaves the outcome unknown."""
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    if committing and code == sqlite3.SQLITE_IOERR:
        return OutcomeUnknown(database, str(error))
    if code == sqlite3.SQLITE_ERROR and "no such table: detent_" in str(error):
        return SchemaMissing(database, str(error))
    return _BY_CODE.get(code, DatabaseError)(database, str(error))


@contextmanager
def translating(database: str, *, committing: bool = False) -> Iterator[None]:
    """Around whatever talks to sqlite3."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, database, committing=committing) from error


@contextmanager
def values_checked() -> Iterator[None]:
    """Around the engine's own statements: a value that SQLite cannot hold is the caller's, `InvalidInput`."""
    try:
        yield
    except (UnicodeEncodeError, OverflowError) as error:
        raise unheld(error) from error


def unheld(error: UnicodeEncodeError | OverflowError) -> InvalidInput:
    """What sqlite3 says of a value that it cannot give to SQLite, as the caller's mistake."""
    if isinstance(error, OverflowError):
        return InvalidInput("number", "an integer past 64 bits", "-2^63 to 2^63 - 1")
    return InvalidInput("text", "a lone surrogate", "text that can be written as UTF-8")
