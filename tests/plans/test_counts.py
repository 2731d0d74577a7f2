"""Counts by state cost the same however many jobs are at rest.

The same calls are made on a record with few finished jobs and on one with twenty thousand more. The work is counted.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from benchmarks.fill import fill
from detent.store.contract import Verbs
from detent.store.jobs.filters import JobFilter
from detent.store.open import open_store
from detent.testing.stores import is_sqlite, plain_connection
from tests.contract.jobs.sample_jobs import abort, claim, enqueue, quarantined, succeeded
from tests.plans.measured import work_of

FEW, MANY = 50, 20_000


def lived(url: str) -> None:
    """Jobs in every state."""
    with closing(open_store(url)) as store:
        succeeded(store)
        quarantined(store)
        enqueue(store, dead_letter=False, attempts_max=1)
        abort(store, claim(store)[0], error="boom")
        store.job_cancel([enqueue(store)], "ana")
        enqueue(store)
        claim(store)
        enqueue(store)


def crowd(url: str, many: int) -> None:
    fill(url, many, 0)
    if not is_sqlite(url):
        with closing(plain_connection(url)) as connection:
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")


@pytest.mark.parametrize("state", ["pending", "running", "succeeded", "failed", "cancelled", "quarantined"])
def test_counts_do_not_walk_through_all_jobs(ready_url: str, state: str) -> None:
    """R4: `counts` and `job_count` walked through all jobs; with ten million that took 6 to 20 seconds."""

    def look(verbs: Verbs, _: Any) -> None:
        assert verbs.job_count(JobFilter(state=state)) == {"succeeded": sum(filled) + 1}.get(state, 1)
        assert {one.state for one in verbs.counts()} >= {state, "pending", "succeeded"}

    filled: list[int] = [FEW]
    crowd(ready_url, FEW)
    lived(ready_url)
    small = work_of(ready_url, look)
    filled.append(MANY)
    crowd(ready_url, MANY)
    assert work_of(ready_url, look) <= 2 * small + 200


def test_jobs_that_wait_are_counted_in_the_order_in_which_they_stand(sqlite_store_url: str) -> None:
    """By group of lanes at once, SQLite sorted a million of them for every look at the queues."""
    with closing(plain_connection(sqlite_store_url)) as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT sum(jobs) FROM detent_queue_counts").fetchall()
    steps = [str(row[3]) for row in plan]
    assert steps[steps.index("SCAN r") + 1] == "UNION ALL", steps
