"""Hostile arguments for the SQL functions that a login may call on PostgreSQL."""

from __future__ import annotations

from contextlib import closing
from types import TracebackType
from typing import Any, Self

import psycopg

from detent.errors import TABLE
from detent.testing.stores import plain_connection
from prove.hostile.calls import Verdict, clipped
from prove.hostile.values import Values

__all__ = ["SqlDoor"]

_FUNCTIONS = """
SELECT p.proname, p.pronargs - p.pronargdefaults,
       ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (t, n) ORDER BY n),
       p.proargnames[1:p.pronargs]
  FROM pg_proc p
 WHERE p.pronamespace = 'detent'::regnamespace AND p.proname ~ '_v[0-9]+$' AND p.prokind = 'f'
   AND p.prorettype <> 'trigger'::regtype
 ORDER BY p.proname, p.oid
"""
_LEFT_OUT = ("verify", "repair", "move_", "migrat", "installed", "database_")
"""They read or lock the whole database."""
_TIMEOUT = "SET statement_timeout = '20s'"
_ALLOWED = ("21", "22", "23", "54", "P0002")
"""SQLSTATEs, besides our own: the same row twice, a value out of range, a constraint, a size, and no such row."""


class SqlDoor:
    """A connection that calls functions."""

    def __init__(self, url: str) -> None:
        self._connection: psycopg.Connection[Any] = plain_connection(url)
        self._connection.autocommit = True
        self._connection.execute(_TIMEOUT)
        self._ours = {codes.sqlstate for codes in TABLE.values()}
        self.functions = [one for one in self._connection.execute(_FUNCTIONS) if not one[0].startswith(_LEFT_OUT)]

    def call(self, values: Values, ids: dict[str, str]) -> tuple[str, Verdict]:
        """Call a drawn function with drawn arguments. Return what was called, and what came of it."""
        name, required, types, names = values.one(self.functions)
        count = values.random.randrange(required, len(types) + 1)
        given = [_value(str(types[n]), str(names[n]) if names else "", ids, values) for n in range(count)]
        marks = ", ".join(f"%s::{types[n]}" for n in range(count))
        text = f"detent.{name}({clipped(given)})"
        try:
            self._connection.execute(f"SELECT * FROM detent.{name}({marks})".encode(), given).fetchall()
        except (psycopg.DataError, UnicodeEncodeError) as error:  # the driver itself refuses NUL and lone surrogates
            return text, Verdict(False, f"{type(error).__name__}: {error}")
        except psycopg.Error as error:
            state = error.sqlstate or ""
            wrong = (
                "" if state.startswith(_ALLOWED) or state in self._ours else f"SQLSTATE {state}: {clipped(str(error))}"
            )
            return text, Verdict(False, f"{state}: {error}", wrong)
        except OverflowError as error:
            return text, Verdict(False, str(error))
        return text, Verdict(True, "ok")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with closing(self._connection):
            pass


def _value(kind: str, name: str, ids: dict[str, str], values: Values) -> Any:
    if kind.endswith("[]"):
        return [_value(kind[:-2], name, ids, values) for _ in range(values.random.randrange(4))]
    if values.random.random() < 0.1:
        return None
    match kind:
        case "bigint" | "integer" | "smallint":
            bits = {"bigint": 63, "integer": 31, "smallint": 15}[kind]
            edges = (0, -1, 1, 2, (1 << bits) - 1, -(1 << bits))
            known = [int(one) for one in ids.values() if one.isdigit() and int(one) < 1 << bits]
            return values.one(edges if values.random.random() < 0.5 or not known else known)
        case "double precision" | "real" | "numeric":
            return values.one((0.0, -1.0, 1.0, 30.0, 1e308, -1e308, float("nan"), float("inf"), float("-inf")))
        case "boolean":
            return values.random.random() < 0.5
        case "timestamp with time zone":
            return values.one(("infinity", "-infinity", "2026-01-01T00:00:00Z", "4713-01-01 BC", "294276-01-01"))
        case "jsonb" | "json":
            return values.one(("{}", "[]", "null", "1", '{"a":1}', '{"1:1":"x"}', "[" * 50 + "]" * 50))
        case _:
            return values.text().replace("\0", "") if values.random.random() < 0.9 else values.text()
