"""What the console reads costs the same however many jobs have finished, and however many tenants they had.

The same calls are made on a record with some finished jobs and on one with forty thousand more. The work is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from benchmarks.fill import fill
from detent.lifecycle.library import JOB
from detent.model.records import Finish, JobPage, NewJob
from detent.store.contract import Store, Verbs
from detent.store.jobs.filters import JobFilter, JobSearch, RecordSearch
from detent.store.open import open_store
from detent.testing.stores import is_sqlite, plain_connection, table
from tests.contract.jobs.sample_jobs import claim, enqueue, quarantined, succeeded
from tests.plans.measured import work_of

FEW, MANY, TENANTS = 5_000, 40_000, 1500


def jobs_in(verbs: Verbs, *, state: str) -> JobPage:
    return verbs.job_list(JobSearch(state=state), limit=50)


CALLS: dict[str, Callable[[Verbs], Any]] = {
    "newest jobs": lambda verbs: verbs.job_list(JobSearch(), limit=50),
    **{f"{state} jobs": partial(jobs_in, state=state) for state in JOB.states},
    "counts by queue": lambda verbs: verbs.queue_depths(),
    "count of a queue": lambda verbs: verbs.job_count(JobFilter(queue="default")),
    "oldest by queue and task": lambda verbs: verbs.ready_oldest(),
    "dead letters": lambda verbs: verbs.dead_report(None, None, None, 100),
    "rates by minute": lambda verbs: verbs.rates(verbs.now() - timedelta(hours=1), 60),
    "rates by hour": lambda verbs: verbs.rates(verbs.now() - timedelta(hours=24), 3600),
    "figures": lambda verbs: verbs.figures(verbs.now() - timedelta(hours=24)),
    "record": lambda verbs: verbs.record_search(RecordSearch(), limit=50),
    "workers": lambda verbs: verbs.worker_list(10.0),
    "alerts": lambda verbs: verbs.alert_list("firing", limit=100),
}


def lived(store: Store) -> None:
    """A job in each state, so that no list is empty."""
    for _ in range(3):
        succeeded(store)
    quarantined(store)
    store.job_cancel([enqueue(store)], "ana")
    enqueue(store)
    claim(store)
    enqueue(store)


def crowd(url: str, many: int, tenants: int) -> None:
    fill(url, many, 0)
    with closing(open_store(url)) as store:
        if tenants:
            first = store.ids_reserve(tenants)
            jobs = [
                NewJob(id=first + n, task="of.tenant", payload="{}", nonce=1, fingerprint="", tenant=f"t{n}")
                for n in range(tenants)
            ]
            store.job_enqueue(jobs)
            held = claim(store, limit=tenants, tasks=["of.tenant"], worker="tenants")
            store.job_finish([Finish(one.job_id, one.attempt) for one in held], "ana")
        while store.counts_fold(50):
            pass
    with closing(plain_connection(url)) as connection:
        # As a worker leaves it: leases of jobs that have ended are gone.
        connection.execute(f"DELETE FROM {table(url, 'lease')} WHERE worker = 'tenants'")
        connection.commit()
        if not is_sqlite(url):
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")


def work(url: str, call: Callable[[Verbs], Any]) -> int:
    return work_of(url, lambda verbs, _: call(verbs) and None)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_scans(kind: str, request: pytest.FixtureRequest) -> None:
    """M1, U4: no whole-table count or scan behind any page, list or metric."""
    url: str = request.getfixturevalue("sqlite_store_url" if kind == "sqlite" else "postgres_ready_url")
    crowd(url, FEW, 0)
    with closing(open_store(url)) as store:
        lived(store)
    small = {name: work(url, call) for name, call in CALLS.items()}
    crowd(url, MANY, TENANTS)
    large = {name: work(url, call) for name, call in CALLS.items()}
    scans = {name: (small[name], large[name]) for name in CALLS if large[name] > 3 * small[name] + 400}
    assert scans == {}
