"""What a connection remembers of its cursors."""

from __future__ import annotations

import gc
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path

from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.driver.write_connection import WriteConnection

ROUNDS = 1000
KEPT_MAX = 800
"""A connection forgets cursors that are gone each time that it has made two hundred."""


def gone() -> int:
    """How many weak references there are to what is gone."""
    gc.collect()
    return sum(type(one) is weakref.ReferenceType and one() is None for one in gc.get_objects())


def test_a_connection_forgets_cursors_that_are_gone(tmp_path: Path) -> None:
    """G6: it remembered all of them, so the memory of a worker grew by 0.2 KiB with each commit block."""
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None, factory=WriteConnection)) as connection:
        connection.execute("CREATE TABLE paid (amount)")
        before = gone()
        for _ in range(ROUNDS):
            connection.execute("SELECT 1")
            connection.executemany("INSERT INTO paid VALUES (?)", ())
            connection.executescript("")
            connection.execute_own("SELECT 1")
            SqliteExecutor(connection).rows("SELECT 1")
        assert gone() - before < KEPT_MAX
