"""`verify` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from detent.model.records import Violation
from detent.store.invariants import can_go_on, load, unchecked, watched
from detent.store.sqlite.driver.executor import Executor
from detent.store.sqlite.driver.failures import translated

__all__ = ["violations"]


def violations(
    executor: Executor, now: int, watch: Callable[[int], None] | None = None, *, schema: bool = True
) -> list[Violation]:
    """Return every row that breaks an invariant, in the order of the invariants' names.

    Without `schema`, the schema is not compared.
    """
    found = []
    for invariant in watched(load("sqlite", schema=schema), watch):
        try:
            rows = executor.rows(invariant.sql, {"now": now})
        except sqlite3.DatabaseError as error:
            known = translated(error, "this file")
            if not can_go_on(known):
                raise
            found.append(unchecked(invariant.name, known))
        else:
            found += [Violation(invariant.name, *(str(part) for part in row)) for row in rows]
    return found
