"""How much work something is on either database: instructions of SQLite's virtual machine in tens, or rows and index
entries that PostgreSQL reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from detent.model.clock import TurnableClock
from detent.store.contract import Verbs
from detent.store.open import open_store
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.verb_base import ids_json
from detent.store.sqlite.verbs import SqliteVerbs
from detent.testing.stores import START, is_sqlite, plain_connection

__all__ = ["Rows", "work_of"]

TOUCHED = """
SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid)), 0)
  FROM pg_class c WHERE c.relnamespace = 'detent'::regnamespace AND c.relkind IN ('r', 'i')
"""


class Rows:
    """What a step of the walk reads with, on either database."""

    def __init__(self, connection: Any, *, is_sqlite: bool) -> None:
        self.is_sqlite = is_sqlite
        self._connection = connection
        listed = ids_json if is_sqlite else list
        self.terms = {"before_all": 0 if is_sqlite else START, "listed": listed}

    def __call__(self, sql: str, params: Any) -> list[Any]:
        if self.is_sqlite:
            return list(self._connection.execute(sql, {**params, "now": 0}).fetchall())
        return list(self._connection.execute(sql.encode(), params or None).fetchall())


def work_of(url: str, work: Callable[[Verbs, Any], None]) -> int:
    """What a piece of work costs; it is rolled back."""
    with closing(plain_connection(url)) as connection:
        return _steps(connection, work) if is_sqlite(url) else _touched(url, connection, work)


def _steps(connection: Any, work: Callable[[Verbs, Any], None]) -> int:
    connection.isolation_level = None
    connection.execute("SELECT count(*) FROM detent_lane WHERE id = 0").fetchall()
    verbs: Any = SqliteVerbs(SqliteExecutor(connection), TurnableClock(START), "test")
    count = [0]

    def step() -> int:
        count[0] += 1
        return 0

    connection.execute("BEGIN IMMEDIATE")
    connection.set_progress_handler(step, 10)
    work(verbs, Rows(connection, is_sqlite=True))
    connection.set_progress_handler(None, 0)
    connection.execute("ROLLBACK")
    return count[0]


def _touched(url: str, connection: Any, work: Callable[[Verbs, Any], None]) -> int:
    connection.execute("SET max_parallel_workers_per_gather = 0")
    connection.commit()
    with closing(open_store(url)) as store:
        connection.execute("SELECT set_config('jit', 'off', true)")
        ((before,),) = connection.execute(TOUCHED).fetchall()
        work(store.on(connection), Rows(connection, is_sqlite=False))
        ((after,),) = connection.execute(TOUCHED).fetchall()
        connection.rollback()
    return int(after - before)
