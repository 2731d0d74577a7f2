"""Statements and errors of Detent on connections of asyncpg, which is never imported here: the caller has imported it.

Every parameter is sent as text, and the statement casts it. asyncpg would require a Python value of each type instead.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import psycopg

__all__ = ["adapt", "as_psycopg", "is_connection"]

_PLACEHOLDER = re.compile("%s")


def is_connection(connection: Any) -> bool:
    """Return whether this is a connection of asyncpg, or one lent by its pool."""
    return any(
        kind.__module__.partition(".")[0] == "asyncpg" and kind.__name__ in ("Connection", "PoolConnectionProxy")
        for kind in type(connection).__mro__
    )


def adapt(sql: str, params: tuple[Any, ...]) -> tuple[str, tuple[str | None, ...]]:
    """Return the statement with numbered placeholders, and its parameters as text."""
    numbers = itertools.count(1)
    return _PLACEHOLDER.sub(lambda _: f"${next(numbers)}::text", sql), tuple(map(_text, params))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_psycopg(error: BaseException) -> psycopg.Error | None:
    """Return the error as psycopg would raise it; None if it is not an error of asyncpg."""
    # SQLAlchemy wraps the driver's error twice.
    chain = [error, *((original, original.__cause__) if (original := getattr(error, "orig", None)) else ())]
    found = next((one for one in chain if one is not None and _is_asyncpg(one)), None)
    if found is None:
        return None
    code = getattr(found, "sqlstate", None)
    if code is not None:
        try:
            return psycopg.errors.lookup(code)(str(found))
        except KeyError:
            made = psycopg.DatabaseError(str(found))
            made.sqlstate = code
            return made
    kind = psycopg.DataError if isinstance(found, ValueError) else psycopg.InterfaceError
    return kind(str(found))


def _is_asyncpg(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] == "asyncpg" for kind in type(error).__mro__)
