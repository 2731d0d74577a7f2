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

from detent.model.clock import to_micros
from detent.model.limit_records import LimitFilter, NewLimit
from detent.model.service_records import WalkPlace
from detent.store.contract import Verbs
from detent.store.invariants import stepwise_check
from detent.store.postgres.store import WHOLE_TABLES
from detent.testing.stores import START, is_sqlite, plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.plans.measured import work_of

FEW, MANY = 20, 20_000
TASK = "mail.send"
_NUMBERS = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})"
_OPEN_KEYS = f"""
{_NUMBERS}
INSERT INTO {{p}}rate_limit (key, per, burst, concurrency_max, tokens, refilled_at, template, throttled, throttled_at,
                             open_until)
SELECT 'shop:{{many}}/' || n, 1, 1, 5, 1, {{now}}, '{TASK}', 6, {{now}}, {{later}} FROM number
"""
_LANES = f"""
{_NUMBERS}
INSERT INTO {{p}}lane (id, queue, task, tenant, priority, limit_key)
SELECT (CAST(g.id AS bigint) << 32) + 10 * {{many}} + n, g.queue, g.task, '', 0, 'shop:{{many}}/' || n
  FROM number, {{p}}lane_group g WHERE g.queue = 'default' AND g.task = '{TASK}'
"""


def crowd(url: str, many: int) -> None:
    """Add `many` keys with a lane each, whose breaker is open."""
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
    if not rows.is_sqlite:
        rows(WHOLE_TABLES, {})
    found = stepwise_check.step(
        "sqlite" if rows.is_sqlite else "postgres", rows, WalkPlace(part="jobs"), 10, **rows.terms
    )
    assert found.violations == ()


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
