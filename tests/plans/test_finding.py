"""Finding costs what it finds, however many jobs and lines of the record there are.

The same searches are made on a record with few of them and on one with twenty thousand more. The work is counted:
instructions of SQLite's virtual machine, pages that PostgreSQL touches.
"""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from typing import Any

from detent.model.clock import TurnableClock, to_micros
from detent.model.records import JobPage, RecordPage
from detent.store.entities.postgres import record_search
from detent.store.jobs.filters import JobSearch, RecordSearch
from detent.store.jobs.postgres_lists import job_list
from detent.store.postgres.statement import Statement
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.verbs import SqliteVerbs
from detent.testing.stores import START, is_sqlite, plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import claim_one, enqueue, quarantined
from tests.plans import measured

MANY = 20_000
PAGE = 10
BLOCK = 1024
"""Ids in a block of `job_span`. The jobs of one block and time are sorted together, so the newest block of both crowds
is about half full."""

_JOBS = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})
INSERT INTO {p}job (id, task, due_at, payload, correlation_id, run_id, nonce, created_at, attempts_max)
SELECT {first} + n, 'other', {at}, '{{}}', 'c' || n, 1000000 + n, 1, {at}, 1 FROM number
"""
_SPANS = """
INSERT INTO {p}job_span (created_at, block, first_id, last_id)
SELECT created_at, id >> 10, min(id), max(id) FROM {p}job WHERE id > {first} GROUP BY created_at, id >> 10
"""
_KEYS = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})
INSERT INTO {p}job_key (tenant, key, job_id, fingerprint) SELECT '', 'k' || ({first} + n), {first} + n, 'x' FROM number
"""
_LINES = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})
INSERT INTO {p}transition_log (entity, entity_id, from_state, to_state, trigger, actor, at)
SELECT 'queue', 'q' || n, 'open', 'paused', 'pause', 'bulk', {at} FROM number
"""
SEARCHES: dict[str, JobSearch | RecordSearch] = {
    "newest": JobSearch(),
    "key": JobSearch(key="order-17"),
    "correlation id": JobSearch(correlation_id="mine"),
    "run": JobSearch(run_id=17),
    "since": JobSearch(since=START - timedelta(minutes=1), until=START + timedelta(minutes=1)),
    "running": JobSearch(state="running"),
    "dead": JobSearch(state="quarantined"),
    "pending": JobSearch(state="pending"),
    "newest changes": RecordSearch(),
    "changes by actor": RecordSearch(actor="ana"),
    "changes of an entity": RecordSearch(entity="queue", entity_id="mail"),
    "changes of a time": RecordSearch(until=START + timedelta(minutes=1)),
}


def crowd(url: str, many: int, first: int) -> None:
    """Add `many` jobs with keys, an hour younger than all others."""
    sqlite = is_sqlite(url)
    at = START + timedelta(hours=1)
    fill = {
        "p": "detent_" if sqlite else "detent.",
        "many": many,
        "first": first,
        "at": str(to_micros(at, field="at")) if sqlite else f"'{at.isoformat()}'::timestamptz",
    }
    with closing(plain_connection(url)) as connection:
        for text in (_JOBS, _SPANS, _KEYS, _LINES):
            connection.execute(text.format(**fill))
        connection.commit()
        if not sqlite:
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")


def work_of(url: str, name: str) -> int:
    """What one page of a search costs."""
    with closing(plain_connection(url)) as connection:
        return _steps(connection, SEARCHES[name]) if is_sqlite(url) else _pages(connection, SEARCHES[name])


def _steps(connection: Any, chosen: JobSearch | RecordSearch) -> int:
    verbs = SqliteVerbs(SqliteExecutor(connection), TurnableClock(START), "test")
    count = [0]

    def step() -> int:
        count[0] += 1
        return 0

    connection.set_progress_handler(step, 10)
    found: JobPage | RecordPage
    if isinstance(chosen, RecordSearch):
        found = verbs.record_search(chosen, None, PAGE)
    else:
        found = verbs.job_list(chosen, None, PAGE)
        verbs.job_details([row.id for row in found.rows])
    connection.set_progress_handler(None, 0)
    assert found.rows
    return count[0]


def _pages(connection: Any, chosen: JobSearch | RecordSearch) -> int:
    wanted: Statement[Any]
    if isinstance(chosen, RecordSearch):
        wanted = record_search(chosen, None, PAGE, 100_000)
    else:
        wanted = job_list(chosen, None, PAGE, 100_000)
    connection.execute(wanted.sql, wanted.params)  # plans are made
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {wanted.sql}"
    ((plan,),) = connection.execute(explain, wanted.params).fetchall()
    connection.rollback()
    found = plan if isinstance(plan, list) else json.loads(plan)
    return int(found[0]["Plan"]["Shared Hit Blocks"] + found[0]["Plan"]["Shared Read Blocks"])


def test_a_page_costs_the_same_whatever_else_is_there(store_url: str) -> None:
    """A job could not be found by any of these, or every job was compared."""
    with turnable_store(store_url) as (store, _):
        quarantined(store)
        enqueue(store, correlation_id="mine", run_id=17, key="order-17")
        claim_one(store)
        enqueue(store)
        store.queue_pause("mail", "ana")
    crowd(store_url, 1500, 1_000 * BLOCK)
    small = {name: work_of(store_url, name) for name in SEARCHES}
    crowd(store_url, MANY, 2_000 * BLOCK)
    large = {name: work_of(store_url, name) for name in SEARCHES}
    dearer = {name: (small[name], large[name]) for name in SEARCHES if large[name] > 1.5 * small[name] + 100}
    assert dearer == {}


def test_a_page_of_the_feed_costs_the_same_wherever_the_reader_is(store_url: str) -> None:
    """At the beginning, with open numbers, and at the end."""

    def costs() -> dict[str, int]:
        def work(place: str | None) -> Any:
            return lambda verbs, _: verbs.record_feed(place, PAGE)

        with turnable_store(store_url) as (store, _):
            end = store.record_feed().next
        places = {"oldest": "0", "some open": "700~10~20.600", "newest": end}
        return {name: measured.work_of(store_url, work(place)) for name, place in places.items()}

    crowd(store_url, 1500, 1_000 * BLOCK)
    small = costs()
    crowd(store_url, MANY, 2_000 * BLOCK)
    large = costs()
    assert {name: (small[name], large[name]) for name in small if large[name] > 1.5 * small[name] + 100} == {}
    assert max(large.values()) < 2000, large
