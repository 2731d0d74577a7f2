"""Eight connections claim ten thousand jobs at once."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import pairwise
from threading import Barrier

import pytest

from detent.model.records import Cancelled, JobRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store, deadlocks
from tests.contract.concurrent_callers import cancel_in_portions, claim_until_none_is_left
from tests.contract.jobs.sample_jobs import claim, new_job

JOBS = 10_000
CLAIMERS = 8
CANCELLERS = 2


def fill(store: Store, clock: StoreClock) -> list[int]:
    """Jobs of three priorities and two tenants that came in over time."""
    first = store.ids_reserve(JOBS)
    for n in range(0, JOBS, 500):
        items = [
            new_job(store, id=first + n + m, priority=(n + m) % 3, tenant="ab"[(n + m) % 7 == 0]) for m in range(500)
        ]
        store.job_enqueue(items)
        clock.advance(1)
    return list(range(first, first + JOBS))


def assert_in_order(rows: list[JobRow]) -> None:
    """Within a tenant: higher priority first, then first in, first out."""
    for tenant in ("a", "b"):
        order = [(-row.priority, row.due_at, row.id) for row in rows if row.tenant == tenant]
        for before, after in pairwise(order):
            assert before < after


@pytest.mark.parametrize("cancels", [0, 3_000])
def test_each_job_once_and_each_connections_claims_in_order(
    store: Store, store_url: str, clock: StoreClock, cancels: int
) -> None:
    """J4: never the same job twice, none left behind, no deadlock; also against concurrent cancels."""
    ids = fill(store, clock)
    unwanted = random.Random(1).sample(ids, cancels)
    cancellers = CANCELLERS if cancels else 0
    start = Barrier(CLAIMERS + cancellers)
    with ExitStack() as open_stores, ThreadPoolExecutor(CLAIMERS + cancellers) as threads:
        stores = [open_stores.enter_context(closing(another_store(store_url, clock))) for _ in range(10)]
        claims = [threads.submit(claim_until_none_is_left, stores[n], n, start) for n in range(CLAIMERS)]
        stops = [
            threads.submit(cancel_in_portions, stores[CLAIMERS + n], unwanted[n::CANCELLERS], start)
            for n in range(cancellers)
        ]
        taken = [each.result() for each in claims]
        stopped = [answer for each in stops for answer in each.result()]
    assert all(type(answer) is Cancelled for answer in stopped)
    away = [answer.job_id for answer in stopped if isinstance(answer, Cancelled) and answer.state == "cancelled"]
    everyone = Counter([job_id for each in taken for job_id in each] + away)
    assert everyone == Counter(ids)
    assert claim(store) == []
    rows = {row.id: row for row in store.job_get(ids) if row}
    assert {rows[job_id].state for job_id in away} <= {"cancelled"}
    assert {rows[job_id].attempt for each in taken for job_id in each} == {1}
    for each in taken:
        assert_in_order([rows[job_id] for job_id in each])
    assert deadlocks(store_url) == 0
