"""The queries of invariants and repair are written once, for PostgreSQL. This module translates them for SQLite."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["for_sqlite"]

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def _microseconds(match: re.Match[str]) -> str:
    return str(int(match[1]) * _SECONDS[match[2]] * 1_000_000)


_STEPS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # Times are microseconds, and the time comes from the injected clock.
    (r"\bdetent\.clock\(\)", ":now"),
    (r"\binterval '(\d+) (second|minute|hour|day)s?'", _microseconds),
    (
        r"""\bto_char\((\S+) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'\)""",
        r"strftime('%Y-%m-%dT%H:%M:%SZ', \1 / 1000000, 'unixepoch')",
    ),
    (r"\bdate_bin\('1 hour', (\S+), 'epoch'\)", r"(\1 - \1 % 3600000000)"),
    # Arrays are JSON. One that damage has made invalid is empty.
    (
        r"= ANY \(([^\s()]+|%\(\w+\)s)\)",
        r"IN (SELECT value FROM json_each(CASE WHEN json_valid(\1) THEN \1 ELSE '[]' END))",
    ),
    (r"\bIS NOT DISTINCT FROM\b", "IS"),
    (r"\bIS DISTINCT FROM\b", "IS NOT"),
    (r"\bgreatest\(", "max("),
    (r"%\((\w+)\)s", r":\1"),
    (r"\bdetent\.", "detent_"),
)


def for_sqlite(query: str) -> str:
    """Return a query for PostgreSQL as the same query for SQLite."""
    for pattern, replacement in _STEPS:
        query = re.sub(pattern, replacement, query)
    return query
