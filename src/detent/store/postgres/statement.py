"""Statements, and lists written as PostgreSQL arrays.

Arrays are sent as text, which is fastest and the same for every driver that a caller's connection may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from detent.model.clock import to_micros

__all__ = ["Row", "Statement", "flags", "moment", "named", "numbers", "texts", "times", "utc"]

T = TypeVar("T")
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Statement(Generic[T]):
    """One call of one function. `writes` says whether a lost answer may hide a change."""

    sql: str
    params: tuple[Any, ...]
    decode: Callable[[Sequence[Row]], T]
    writes: bool = True


def numbers(values: Iterable[float | None]) -> str:
    """Return an array of numbers."""
    return "{" + ",".join(map(repr, values)).replace("None", "NULL") + "}"


def texts(values: Iterable[str | None]) -> str:
    """Return an array of text. Every character is kept."""
    listed = tuple(values)
    if listed and None not in listed:
        # Joined by NUL, which text in PostgreSQL cannot contain. The server refuses a text that contains it.
        joined = "\0".join(listed)  # type: ignore[arg-type]
        if joined.count("\0") == len(listed) - 1:
            return '{"' + _escaped(joined).replace("\0", '","') + '"}'
    return "{" + ",".join("NULL" if value is None else f'"{_escaped(value)}"' for value in listed) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def flags(values: Iterable[bool]) -> str:
    """Return an array of booleans."""
    return "{" + ",".join("t" if value else "f" for value in values) + "}"


def times(values: Iterable[datetime | None], *, field: str) -> str:
    """Return an array of times. A naive time raises `InvalidInput` about `field`."""
    return "{" + ",".join("NULL" if value is None else f'"{moment(value, field=field)}"' for value in values) + "}"


def moment(value: datetime, *, field: str) -> str:
    """Return one time. A naive time, or one outside of the calendar in UTC, raises `InvalidInput` about `field`."""
    to_micros(value, field=field)
    return value.astimezone(UTC).isoformat()


def utc(value: datetime) -> datetime:
    """Return a time in UTC, whatever the session's time zone."""
    return value.astimezone(UTC)


def named(fields: Sequence[str], row: Row) -> dict[str, Any]:
    """Return a row by its names, with times in UTC."""
    return {name: utc(value) if isinstance(value, datetime) else value for name, value in zip(fields, row, strict=True)}
