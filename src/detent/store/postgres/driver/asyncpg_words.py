"""What asyncpg calls things: its connections, its placeholders, its errors. It is never imported here: a caller who
passes one of its connections has imported it.

Every value goes as text, and the statement casts it: asyncpg would otherwise ask for a Python value of each type.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import psycopg

__all__ = ["as_psycopg", "is_connection", "said"]

_PLACE = re.compile("%s")


def is_connection(connection: Any) -> bool:
    """Whether it is a connection of asyncpg, or one that its pool lent."""
    return any(
        kind.__module__.partition(".")[0] == "asyncpg" and kind.__name__ in ("Connection", "PoolConnectionProxy")
        for kind in type(connection).__mro__
    )


def said(sql: str, params: tuple[Any, ...]) -> tuple[str, tuple[str | None, ...]]:
    """The statement with numbered placeholders, and its values as text."""
    numbers = itertools.count(1)
    return _PLACE.sub(lambda _: f"${next(numbers)}::text", sql), tuple(map(_text, params))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_psycopg(error: BaseException) -> psycopg.Error | None:
    """The same error as psycopg would raise it; None if it is not one of asyncpg's."""
    # SQLAlchemy wraps the driver's error, and its adapter wraps it once more.
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
