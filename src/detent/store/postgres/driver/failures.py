"""Translate the errors of psycopg into Detent's own. No driver error leaves the store."""

from __future__ import annotations

import re
from types import TracebackType

import psycopg
from psycopg.conninfo import conninfo_to_dict

from detent.errors import (
    DatabaseBusy,
    DatabaseError,
    DatabaseForbidden,
    DatabaseFull,
    DatabaseInaccessible,
    DatabaseReadOnly,
    DatabaseUnreachable,
    DetentError,
    GuardViolation,
    InvalidInput,
    InvalidSetting,
    OutcomeUnknown,
    SchemaMissing,
)
from detent.store.move.closing import CLOSED, moved_error

__all__ = [
    "database_name",
    "is_lost",
    "is_server_failure",
    "is_transient",
    "no_connection",
    "translated",
    "translating",
]

_TRANSIENT = ("40001", "40P01", "55P03")
"""Serialization failure, deadlock, lock timeout: nothing was written, and a retry may well succeed (R4)."""

_IDLE_TIMEOUT = "25P03"
_IDLE_MESSAGE = (
    "the server ended the transaction because it was idle for too long (inside ctx.commit(): longer than the rest of "
    "its lease), and nothing of it was written; do slow work before the block"
)
_LOGIN_REFUSED = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|permission denied for database"
    r"|not permitted to log in|(?:role|user|database) \"[^\"]*\" does not exist|no such (?:user|database)"
)
"""What libpq says of a refused login. There is no SQLSTATE, since there is no connection."""

_BY_CODE: dict[str, type[DatabaseError]] = {
    **dict.fromkeys(_TRANSIENT, DatabaseBusy),
    "57014": DatabaseBusy,  # cancelled by a statement timeout
    "53100": DatabaseFull,
    "53200": DatabaseBusy,
    "53300": DatabaseBusy,
    "25006": DatabaseReadOnly,
    "57P01": DatabaseUnreachable,
    "57P02": DatabaseUnreachable,
    "57P03": DatabaseUnreachable,
    "3D000": DatabaseUnreachable,
    "3F000": SchemaMissing,
    "42P01": SchemaMissing,
    "42883": SchemaMissing,
    "42501": DatabaseForbidden,
    "DT041": GuardViolation,
    "DT002": GuardViolation,
}
_BY_CLASS: dict[str, type[DatabaseError]] = {
    "08": DatabaseUnreachable,
    "28": DatabaseUnreachable,
    "23": GuardViolation,
    "53": DatabaseBusy,
}


def database_name(url: str) -> str:
    """Return the database for messages, without secrets. Raises `InvalidSetting` for a URL that libpq cannot read, and
    does not repeat it."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        raise InvalidSetting(
            "database url", "one that cannot be read", "postgresql://user@host:port/database?option=value"
        ) from None
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host') or ''}{port}/{parts.get('dbname') or ''}"


def is_transient(error: BaseException) -> bool:
    """Return whether the statement may be retried."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _TRANSIENT


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is lost, so that the outcome of the statement is unknown."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        # libpq reports a lost connection as a result without a code, for which psycopg has no class.
        is_from_libpq = type(error) is psycopg.DatabaseError
        return is_from_libpq or isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate[:2] == "08" or error.sqlstate in ("57P01", "57P02", "57P03", _IDLE_TIMEOUT)


def is_server_failure(error: BaseException) -> bool:
    """Return whether the statement itself is not to blame: the connection is lost, the server is read-only or full, or
    another transaction was in the way."""
    if is_lost(error) or is_transient(error):
        return True
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(("25006", "53"))


def translated(error: psycopg.Error, database: str, *, committing: bool = False) -> DetentError:
    """Return the error as one of Detent's. If the connection was lost while committing, the outcome is unknown."""
    message = _IDLE_MESSAGE if error.sqlstate == _IDLE_TIMEOUT else str(error).strip() or type(error).__name__
    if is_lost(error):
        return (OutcomeUnknown if committing else DatabaseUnreachable)(database, message)
    code = error.sqlstate or ""
    if code == CLOSED and (moved := moved_error(database, message)) is not None:
        return moved
    if code[:2] == "22" or (not code and isinstance(error, psycopg.DataError)):
        return InvalidInput(
            "value", message.splitlines()[0], "what PostgreSQL can hold: 64-bit integers, text without NUL"
        )
    return _BY_CODE.get(code, _BY_CLASS.get(code[:2], DatabaseError))(database, message)


def no_connection(error: psycopg.Error, database: str) -> DetentError:
    """Return why there is no connection: `DatabaseInaccessible` if the only server has refused the login, so that
    waiting is useless."""
    message = str(error).strip()
    if "Multiple connection attempts" not in message and _LOGIN_REFUSED.search(message):
        return DatabaseInaccessible(database, message)
    return translated(error, database)


class translating:
    """Translate errors of psycopg, or of SQLAlchemy over it, inside the block. A class because it is faster."""

    __slots__ = ("_committing", "_database")

    def __init__(self, database: str, *, committing: bool = False) -> None:
        self._database = database
        self._committing = committing

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if error is None:
            return
        if isinstance(error, psycopg.Error):
            raise translated(error, self._database, committing=self._committing) from error
        if isinstance(error, UnicodeEncodeError):
            raise InvalidInput("text", "a lone surrogate", "text that can be written as UTF-8") from error
        if isinstance(error, Exception) and isinstance(original := getattr(error, "orig", None), psycopg.Error):
            raise translated(original, self._database, committing=self._committing) from error
