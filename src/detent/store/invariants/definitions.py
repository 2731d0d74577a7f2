"""Definitions as PostgreSQL gives them back, compared with those in the migrations.

PostgreSQL keeps a CHECK, an index or the condition of a trigger as a parsed tree and prints it in its own words: with
more parentheses, with casts, and with `= ANY (ARRAY[...])` for `IN (...)`. `canonical` takes those differences away, on
both sides: here in Python for the text of the migrations, and as `CANONICAL` in SQL for what the database says.
"""

from __future__ import annotations

import functools
import re
from hashlib import md5

from detent.store.invariants.expected import Constraint
from detent.store.migrate import load

__all__ = ["CANONICAL", "canonical", "digest", "postgres_indexes", "postgres_views", "sqlite_definitions"]

_CAST = (
    r"::(text|bigint|integer|smallint|boolean|double precision|timestamp with time zone|numeric|interval|jsonb)(\[\])?"
)
_STEPS = (
    (_CAST, ""),
    (r"= any \(array\[", " in "),
    (r"<> all \(array\[", " not in "),
    (" using btree ", ""),
    (" not valid$", ""),
    (r"[\s()\[\]]", ""),
)
_BETWEEN = re.compile(r"(\w+) BETWEEN (\S+?) AND (\S+?)(?=[\s,)]|$)")
_INDEX = re.compile(
    r"^(?:CREATE INDEX (?P<name>\w+) ON (?P<on>detent\.(?P<table>\w+) [^;]+)|DROP INDEX (?:IF EXISTS )?"
    r"detent\.(?P<dropped>\w+));",
    re.MULTILINE,
)
_VIEW = re.compile(
    r"^(?:CREATE (?:OR REPLACE )?VIEW detent\.(?P<name>\w+)\b|DROP VIEW (?:IF EXISTS )?detent\.(?P<dropped>\w+);)",
    re.MULTILINE,
)


def canonical(text: str) -> str:
    """Return a definition without what PostgreSQL may print in another way."""
    text = text.lower()
    for pattern, instead in _STEPS:
        text = re.sub(pattern, instead, text)
    return text


def _in_sql(expression: str) -> str:
    text = f"lower({expression})"
    for pattern, instead in _STEPS:
        text = f"regexp_replace({text}, '{pattern}', '{instead}', 'g')"
    return text


CANONICAL = _in_sql("{definition}")
"""The same in SQL, for the expression that is put in place of `{definition}`."""


def digest(constraint: Constraint) -> str:
    """Return the md5 of a constraint's canonical definition, from the words of its migration."""
    text = _BETWEEN.sub(r"\1 >= \2 AND \1 <= \3", constraint.ddl.rstrip("; \n"))
    text = text.partition(" ON " if constraint.kind == "i" else f"CONSTRAINT {constraint.name} ")[2]
    return md5(canonical(text).encode(), usedforsecurity=False).hexdigest()


@functools.cache
def postgres_indexes() -> dict[str, str]:
    """Return the statement for every index that is not unique, by name."""
    found: dict[str, str] = {}
    for match in _INDEX.finditer(_postgres_text()):
        if match["dropped"]:
            found.pop(match["dropped"], None)
        else:
            found[match["name"]] = match[0]
    return found


@functools.cache
def postgres_views() -> tuple[str, ...]:
    """Return the names of the views."""
    found: dict[str, None] = {}
    for match in _VIEW.finditer(_postgres_text()):
        if match["dropped"]:
            found.pop(match["dropped"], None)
        else:
            found[match["name"]] = None
    return tuple(found)


@functools.cache
def sqlite_definitions() -> dict[tuple[str, str], str]:
    """Return the text that SQLite keeps for every view and every index that is not unique, by (type, name)."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in load("sqlite"):
            connection.executescript(migration.sql)
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
        return {
            (kind, name): text
            for kind, name, text in rows
            if kind == "view" or (kind == "index" and not text.startswith("CREATE UNIQUE"))
        }


def _postgres_text() -> str:
    return "\n".join(migration.sql for migration in load("postgres"))
