"""What psycopg raises, in Detent's own words. No driver error leaves this room."""

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
    DatabaseReadOnly,
    DatabaseUnreachable,
    DetentError,
    GuardViolation,
    InvalidInput,
    InvalidSetting,
    NoWayIn,
    OutcomeUnknown,
    SchemaMissing,
)

__all__ = ["database_name", "is_lost", "is_of_the_server", "is_passing", "no_connection", "translated", "translating"]

_PASSING = ("40001", "40P01", "55P03")
"""Serialization failure, deadlock, lock timeout: nothing was written, and the same again may well succeed (R4)."""

_IDLED = "25P03"
_IDLED_SAID = (
    "the transaction stood idle for longer than it may (inside ctx.commit(): than its lease had left), so the server "
    "ended it and nothing of it was written; do what is slow before the block"
)
_NOT_LET_IN = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|permission denied for database"
    r"|not permitted to log in|(?:role|user|database) \"[^\"]*\" does not exist|no such (?:user|database)"
)
"""What libpq says of a login that is refused: without a code, since there is no connection that could have one."""

_BY_CODE: dict[str, type[DatabaseError]] = {
    **dict.fromkeys(_PASSING, DatabaseBusy),
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
    """The database for messages, without secrets. Refuses a url that libpq cannot read, without repeating it."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        raise InvalidSetting(
            "database url", "one that cannot be read", "postgresql://user@host:port/database?option=value"
        ) from None
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host') or ''}{port}/{parts.get('dbname') or ''}"


def is_passing(error: BaseException) -> bool:
    """Whether asking again is the right answer."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _PASSING


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, so that nobody here knows what became of the statement."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        # What libpq itself says of a connection comes as a result without a code: psycopg knows no class for it.
        of_libpq = type(error) is psycopg.DatabaseError
        return of_libpq or isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate[:2] == "08" or error.sqlstate in ("57P01", "57P02", "57P03", _IDLED)


def is_of_the_server(error: BaseException) -> bool:
    """Whether any statement would have failed: the connection is gone, the server takes no writes or has no room, or
    others were in the way."""
    if is_lost(error) or is_passing(error):
        return True
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(("25006", "53"))


def translated(error: psycopg.Error, database: str, *, committing: bool = False) -> DetentError:
    """The same failure as an error of Detent's. A connection lost while committing leaves the outcome unknown."""
    said = _IDLED_SAID if error.sqlstate == _IDLED else str(error).strip() or type(error).__name__
    if is_lost(error):
        return (OutcomeUnknown if committing else DatabaseUnreachable)(database, said)
    code = error.sqlstate or ""
    if code[:2] == "22" or (not code and isinstance(error, psycopg.DataError)):
        return InvalidInput(
            "value", said.splitlines()[0], "what PostgreSQL can hold: 64-bit integers, text without NUL"
        )
    return _BY_CODE.get(code, _BY_CLASS.get(code[:2], DatabaseError))(database, said)


def no_connection(error: psycopg.Error, database: str) -> DetentError:
    """Why there is no connection. `NoWayIn` where the only server there is has said no, in words that this version
    knows: from then on it is not a matter of time."""
    said = str(error).strip()
    if "Multiple connection attempts" not in said and _NOT_LET_IN.search(said):
        return NoWayIn(database, said)
    return translated(error, database)


class translating:
    """Around whatever talks to psycopg, or to SQLAlchemy over it. A class, since it stands around every statement."""

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
