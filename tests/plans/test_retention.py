"""Retention costs what it deletes, however many horizons, keys and lines there are.

The same calls are made on a record with few of them and on one with twenty thousand. The work is counted: instructions
of SQLite's virtual machine, pages that PostgreSQL touches.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any

from detent.model.clock import TurnableClock, to_micros
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.verbs import SqliteVerbs
from detent.testing.stores import START, is_sqlite, plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import claim, enqueue, finish

MANY = 20_000
OLD = 50
LATER = START + timedelta(days=1)

_HORIZONS = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})
INSERT INTO {p}horizon (before, actor, at) SELECT {before}, 'retention', {at} FROM number
"""
_KEYS = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})
INSERT INTO {p}job_key (tenant, key, job_id, fingerprint, expires_at)
SELECT '', 'k{many}/' || n, n, 'x', {at} FROM number
"""
_LINES = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})
INSERT INTO {p}transition_log (entity, entity_id, from_state, to_state, trigger, actor, at)
SELECT 'queue', 'mail', 'open', 'paused', 'pause', 'ana', {at} FROM number
"""
_YOUNG = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})
INSERT INTO {p}job (id, task, payload, queue, priority, due_at, created_at, nonce, attempts_max)
SELECT 1000000 + n, 'mail.send', '{{}}', 'default', 0, {later}, {later}, 1, 1 FROM number
"""
_YOUNG_SPANS = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})
INSERT INTO {p}job_span (created_at, block, first_id, last_id)
SELECT {later}, (1000000 + n) >> 10, 1000000 + n, 1000000 + n FROM number
"""
_CALLS = {
    "job_prune": "SELECT * FROM detent.job_prune_v1('{later}', NULL, NULL, 100, 'retention')",
    "job_prunable": "SELECT * FROM detent.job_prunable_v1('{later}', NULL, NULL, 10000)",
    "key_expire": "SELECT detent.key_expire_v1(10)",
    "key_forget": "SELECT * FROM detent.key_forget_v1('', '', 10)",
    "log_prune": "SELECT * FROM detent.log_prune_v1('{later}', 0, 10, 'retention')",
}


def crowd(url: str, many: int, texts: Sequence[str] = (_HORIZONS, _KEYS, _LINES)) -> None:
    """Add `many` horizons, expired keys and lines of one queue, or what `texts` add."""
    sqlite = is_sqlite(url)
    start = to_micros(START, field="start")
    fill = {
        "p": "detent_" if sqlite else "detent.",
        "many": many,
        "at": str(start) if sqlite else f"'{START.isoformat()}'::timestamptz",
        "later": str(to_micros(LATER, field="later")) if sqlite else f"'{LATER.isoformat()}'::timestamptz",
        "before": f"{start} - n" if sqlite else f"'{START.isoformat()}'::timestamptz - n * interval '1 second'",
    }
    with closing(plain_connection(url)) as connection:
        for text in texts:
            connection.execute(text.format(**fill))
        connection.commit()
        if not sqlite:
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")


def work_of(url: str, verb: str) -> int:
    """What one call of a verb costs; it is rolled back."""
    with closing(plain_connection(url)) as connection:
        return _steps(connection, verb) if is_sqlite(url) else _pages(connection, verb)


def _steps(connection: Any, verb: str) -> int:
    connection.isolation_level = None
    verbs = SqliteVerbs(SqliteExecutor(connection), TurnableClock(LATER + timedelta(days=1)), "test")
    calls: dict[str, tuple[Any, ...]] = {
        "job_prune": (LATER, None, 100, "retention"),
        "job_prunable": (LATER, None, 10_000),
        "key_expire": (10,),
        "key_forget": (("", ""), 10),
        "log_prune": (LATER, 0, 10, "retention"),
    }
    count = [0]

    def step() -> int:
        count[0] += 1
        return 0

    connection.execute("BEGIN IMMEDIATE")
    connection.set_progress_handler(step, 10)
    getattr(verbs, verb)(*calls[verb])
    connection.set_progress_handler(None, 0)
    connection.execute("ROLLBACK")
    return count[0]


def _pages(connection: Any, verb: str) -> int:
    text = _CALLS[verb].format(later=LATER.isoformat())
    connection.execute("UPDATE detent.test_clock SET at = %s", (LATER + timedelta(days=1),))
    connection.execute(text)  # plans are made
    connection.rollback()
    connection.execute("UPDATE detent.test_clock SET at = %s", (LATER + timedelta(days=1),))
    ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}").fetchall()
    connection.rollback()
    found = plan if isinstance(plan, list) else json.loads(plan)
    return int(found[0]["Plan"]["Shared Hit Blocks"] + found[0]["Plan"]["Shared Read Blocks"])


def test_a_portion_costs_the_same_whatever_else_is_there(store_url: str) -> None:
    """J16: the newest horizon was looked for among all of them, once for every job that went; each portion of jobs
    deleted all expired keys."""
    with turnable_store(store_url) as (store, _):
        for _ in range(OLD):
            enqueue(store)
        for held in claim(store):
            finish(store, held)
    crowd(store_url, 100)
    small = {verb: work_of(store_url, verb) for verb in _CALLS}
    crowd(store_url, MANY)
    large = {verb: work_of(store_url, verb) for verb in _CALLS}
    dearer = {verb: (small[verb], large[verb]) for verb in _CALLS if large[verb] > 2 * small[verb] + 100}
    assert dearer == {}


def test_jobs_that_are_younger_than_the_horizon_cost_nothing(store_url: str) -> None:
    """J16: every pass read all jobs. A worker that had nothing to do spent 3 % of a core on it, as long as there were
    jobs."""
    with turnable_store(store_url) as (store, _):
        for _ in range(OLD):
            enqueue(store)
        for held in claim(store):
            finish(store, held)
    before = work_of(store_url, "job_prunable")
    crowd(store_url, MANY, (_YOUNG, _YOUNG_SPANS))
    assert work_of(store_url, "job_prunable") <= 2 * before + 100
