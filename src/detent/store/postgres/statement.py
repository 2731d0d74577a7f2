"""What a statement is, and how Python's lists are written for PostgreSQL.

Arrays go as text, which is the fastest way in and the same for every driver: a caller's connection may be anybody's.
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
    """An array of numbers."""
    return "{" + ",".join(map(repr, values)).replace("None", "NULL") + "}"


def texts(values: Iterable[str | None]) -> str:
    """An array of text; every letter survives."""
    listed = tuple(values)
    if listed and None not in listed:
        # All in one go, divided by what PostgreSQL's text cannot hold. One that holds it is for the server to refuse.
        joined = "\0".join(listed)  # type: ignore[arg-type]
        if joined.count("\0") == len(listed) - 1:
            return '{"' + _escaped(joined).replace("\0", '","') + '"}'
    return "{" + ",".join("NULL" if value is None else f'"{_escaped(value)}"' for value in listed) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def flags(values: Iterable[bool]) -> str:
    """An array of booleans."""
    return "{" + ",".join("t" if value else "f" for value in values) + "}"


def times(values: Iterable[datetime | None], *, field: str) -> str:
    """An array of times. A naive one is refused in the name of `field`."""
    return "{" + ",".join("NULL" if value is None else f'"{moment(value, field=field)}"' for value in values) + "}"


def moment(value: datetime, *, field: str) -> str:
    """One time. A naive one is refused in the name of `field`."""
    to_micros(value, field=field)
    return value.astimezone(UTC).isoformat()


def utc(value: datetime) -> datetime:
    """A time as the contract gives it, whatever the session's time zone."""
    return value.astimezone(UTC)


def named(fields: Sequence[str], row: Row) -> dict[str, Any]:
    """A row by its names, with times in UTC."""
    return {name: utc(value) if isinstance(value, datetime) else value for name, value in zip(fields, row, strict=True)}
