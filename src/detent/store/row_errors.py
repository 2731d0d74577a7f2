"""Tell an error of one row from an error of the database.

A service handles many rows in one transaction. If one damaged row makes it fail, the service handles the rows one by
one and passes over the damaged one. That is wrong if any other statement would have failed as well.
"""

from __future__ import annotations

from detent.errors import (
    DatabaseBusy,
    DatabaseForbidden,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnreachable,
    NotADatabase,
    OutcomeUnknown,
    SchemaDiffers,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
)

__all__ = ["cause_of", "is_damage", "is_of_one_row"]

_OF_ALL = (
    DatabaseBusy,
    DatabaseForbidden,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnreachable,
    NotADatabase,
    OutcomeUnknown,
    SchemaDiffers,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
)
_CAUSE_MAX = 300


def is_of_one_row(error: BaseException) -> bool:
    """Return whether a row may have caused the error: a guard, a constraint or a value that cannot be read."""
    return isinstance(error, Exception) and not isinstance(error, _OF_ALL)


def is_damage(error: BaseException) -> bool:
    """Return whether damaged rows or pages may have caused the error. What does not touch them still works."""
    return is_of_one_row(error) or isinstance(error, NotADatabase)


def cause_of(error: BaseException) -> str:
    """Return the first line of the error's message, short enough for a log line and an alert."""
    return (str(error).partition("\n")[0] or type(error).__name__)[:_CAUSE_MAX]
