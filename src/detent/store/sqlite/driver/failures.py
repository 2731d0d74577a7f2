"""Translate the errors of sqlite3 into Detent's own. No driver error leaves the store."""

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
from detent.store.move.closing import moved_error

__all__ = ["is_io_error", "translated", "translating", "unstorable", "values_checked"]

_PRIMARY = 0xFF

_BY_CODE: dict[int, type[DatabaseError]] = {
    sqlite3.SQLITE_BUSY: DatabaseBusy,
    sqlite3.SQLITE_LOCKED: DatabaseBusy,
    sqlite3.SQLITE_PROTOCOL: DatabaseBusy,
    sqlite3.SQLITE_INTERRUPT: DatabaseBusy,  # cancelled
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
    """Return the error as one of Detent's. After an I/O error while committing, the outcome is unknown."""
    code = _code(error)
    if code == sqlite3.SQLITE_CONSTRAINT and (moved := moved_error(database, str(error))) is not None:
        return moved
    if committing and code == sqlite3.SQLITE_IOERR:
        return OutcomeUnknown(database, str(error))
    if code == sqlite3.SQLITE_ERROR and "no such table: detent_" in str(error):
        return SchemaMissing(database, str(error))
    return _BY_CODE.get(code, DatabaseError)(database, str(error))


def is_io_error(error: sqlite3.Error) -> bool:
    """Return whether a read, a write or a sync failed."""
    return _code(error) == sqlite3.SQLITE_IOERR


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY


@contextmanager
def translating(database: str, *, committing: bool = False) -> Iterator[None]:
    """Translate errors of sqlite3 inside the block."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, database, committing=committing) from error


@contextmanager
def values_checked() -> Iterator[None]:
    """Raise `InvalidInput` if a value of the caller's cannot be stored in SQLite."""
    try:
        yield
    except (UnicodeEncodeError, OverflowError) as error:
        raise unstorable(error) from error


def unstorable(error: UnicodeEncodeError | OverflowError) -> InvalidInput:
    """Return the error for a value that cannot be stored in SQLite."""
    if isinstance(error, OverflowError):
        return InvalidInput("number", "an integer past 64 bits", "-2^63 to 2^63 - 1")
    return InvalidInput("text", "a lone surrogate", "text that can be written as UTF-8")
