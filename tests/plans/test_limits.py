"""What limits cost does not depend on how many keys there are.

The same calls are made on a record with few keys and on one with twenty thousand. The work is counted: instructions of
SQLite's virtual machine, rows and index entries that PostgreSQL reads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from detent.model.clock import TurnableClock, to_micros
from detent.model.limit_records import LimitFilter, NewLimit
from detent.model.service_records import WalkPlace
from detent.store.contract import Verbs
from detent.store.invariants import walk
from detent.store.open import open_store
from detent.store.postgres.store import WHOLE_TABLES
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.verbs.all import SqliteVerbs
from detent.store.sqlite.verbs.base import ids_json
from detent.testing.stores import START, is_sqlite, plain_connection, turnable_store
from tests.contract.kit import claim, enqueue

FEW, MANY = 20, 20_000
TASK = "mail.send"
TOUCHED = """
SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid)), 0)
  FROM pg_class c WHERE c.relnamespace = 'detent'::regnamespace AND c.relkind IN ('r', 'i')
"""
_NUMBERS = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})"
_OPEN_KEYS = f"""
{_NUMBERS}
INSERT INTO {{p}}rate_limit (key, per, burst, concurrency_max, tokens, refilled_at, template, throttled, throttled_at,
                             open_until)
SELECT 'shop:{{many}}/' || n, 1, 1, 5, 1, {{now}}, '{TASK}', 6, {{now}}, {{later}} FROM number
"""
_LANES = f"""
{_NUMBERS}
INSERT INTO {{p}}lane (queue, task, tenant, priority, limit_key)
SELECT 'default', '{TASK}', '', 0, 'shop:{{many}}/' || n FROM number
"""


def crowd(url: str, many: int) -> None:
    """Add so many keys with a lane each, whose breaker is open."""
    sqlite = is_sqlite(url)
    times = (START, START + timedelta(minutes=1))
    now, later = (str(to_micros(at, field="at")) if sqlite else f"'{at.isoformat()}'::timestamptz" for at in times)
    values = {"p": "detent_" if sqlite else "detent.", "many": many, "now": now, "later": later}
    with closing(plain_connection(url)) as connection:
        for text in (_OPEN_KEYS, _LANES):
            connection.execute(text.format(**values))
        connection.commit()
        if not sqlite:
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")


def waiting_worker(verbs: Verbs, _: Any) -> None:
    assert verbs.limit_refill(None, [TASK]) is not None


def list_of_one(verbs: Verbs, _: Any) -> None:
    assert [row.key for row in verbs.limit_list(LimitFilter(tasks=(TASK,)))] == [TASK]


def first_page(verbs: Verbs, _: Any) -> None:
    assert len(verbs.limit_list(limit=10)) == 10


def one_claim(verbs: Verbs, _: Any) -> None:
    assert len(claim(verbs, limit=1)) == 1


def walk_of_jobs(_: Verbs, rows: Any) -> None:
    found = walk.step("sqlite" if rows.is_sqlite else "postgres", rows, WalkPlace(part="jobs"), 10, **rows.terms)
    assert found.violations == ()


class _Rows:
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
    work(verbs, _Rows(connection, is_sqlite=True))
    connection.set_progress_handler(None, 0)
    connection.execute("ROLLBACK")
    return count[0]


def _touched(url: str, connection: Any, work: Callable[[Verbs, Any], None]) -> int:
    connection.execute("SET max_parallel_workers_per_gather = 0")
    connection.commit()
    with closing(open_store(url)) as store:
        if work is walk_of_jobs:
            connection.execute(WHOLE_TABLES)
        ((before,),) = connection.execute(TOUCHED).fetchall()
        work(store.on(connection), _Rows(connection, is_sqlite=False))
        ((after,),) = connection.execute(TOUCHED).fetchall()
        connection.rollback()
    return int(after - before)


@pytest.mark.parametrize("work", [waiting_worker, list_of_one, first_page, one_claim, walk_of_jobs])
def test_limits_cost_the_same_however_many_keys_there_are(store_url: str, work: Callable[[Verbs, Any], None]) -> None:
    """J12: a waiting worker fetched every key with what runs under it every five seconds; a claim swept every key whose
    breaker was open; a step of the invariants looked into the lanes of all keys for each job."""
    with turnable_store(store_url) as (store, _):
        store.limit_put(NewLimit(key=TASK, rate=10, burst=10, concurrency_max=50, tasks=(TASK,)))
        for number in range(20):
            enqueue(store, limit_key=f"own:{number}")
    crowd(store_url, FEW)
    small = work_of(store_url, work)
    crowd(store_url, MANY)
    large = work_of(store_url, work)
    assert large <= 2 * small + 100
