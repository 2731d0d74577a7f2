"""Figures of a day cost the same however many jobs have finished, and however old the record is.

The same calls are made on a record with few finished jobs and hours, and on one with many more. The work is counted.
"""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

from benchmarks.fill import fill
from detent.model.clock import to_micros
from detent.store.contract import Verbs
from detent.store.open import open_store
from detent.testing.stores import is_sqlite, plain_connection, table
from tests.contract.jobs.sample_jobs import succeeded
from tests.plans.measured import work_of

FEW, MANY = 50, 20_000
HOURS = 29 * 24
HOUR = 3_600_000_000
BUCKETS = 30


def grow(url: str, jobs: int, hours: range) -> None:
    """Add finished jobs, and hours that are older than a day."""
    fill(url, jobs, 0)
    with closing(open_store(url)) as store:
        begin = to_micros(store.now() - timedelta(hours=26), field="begin") // HOUR * HOUR
    at = "{}" if is_sqlite(url) else "to_timestamp({} / 1000000.0)"
    rows = ", ".join(
        f"({at.format(begin - n * HOUR)}, 'mail.send', 'running', 'succeeded', 'done', {bucket}, 1, 0, 0, 0, 0, 0, 0)"
        for n in hours
        for bucket in range(BUCKETS)
    )
    with closing(plain_connection(url)) as connection:
        connection.execute(f"INSERT INTO {table(url, 'transition_hour')} VALUES {rows}")
        connection.commit()
        if not is_sqlite(url):
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")


def test_figures_read_their_hours_only(ready_url: str) -> None:
    """M1: no walk through executions, jobs or hours that were not asked for."""
    with closing(open_store(ready_url)) as store:
        for _ in range(5):
            succeeded(store)
        since = store.now() - timedelta(hours=24)

    def look(verbs: Verbs, _: Any) -> None:
        assert sum(one.moves for one in verbs.figures(since)) == 5
        assert verbs.batch_figures(since) == []

    grow(ready_url, FEW, range(1))
    small = work_of(ready_url, look)
    grow(ready_url, MANY, range(1, HOURS))
    assert work_of(ready_url, look) <= 2 * small + 200
