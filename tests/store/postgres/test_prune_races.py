"""Retention while others work: no count and no slot of a limit is lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from detent.model.limit_records import NewLimit
from detent.store.contract import Store
from detent.store.jobs.filters import JobFilter
from detent.testing.stores import StoreClock, dump, plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import claim_one, enqueue, succeeded
from tests.deadlines import scaled, until
from tests.store.postgres.connections import run_sql

_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
_HOLDS_UP = """
CREATE OR REPLACE FUNCTION detent.limit_tokens(l detent.rate_limit, t timestamptz) RETURNS double precision
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7);
  RETURN l.burst - 1;
END $$
"""


@pytest.fixture
def store_and_clock(postgres_store_url: str) -> Iterator[tuple[Store, StoreClock]]:
    with turnable_store(postgres_store_url) as pair:
        yield pair


@pytest.fixture
def store(store_and_clock: tuple[Store, StoreClock]) -> Store:
    return store_and_clock[0]


@pytest.fixture
def clock(store_and_clock: tuple[Store, StoreClock]) -> StoreClock:
    return store_and_clock[1]


@pytest.fixture
def other(postgres_store_url: str) -> Iterator[Any]:
    with closing(plain_connection(postgres_store_url)) as connection:
        yield connection


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as thread:
        yield thread


def is_done_or_waits(url: str, work: Future[Any]) -> bool:
    return work.done() or bool(run_sql(url, _WAITS))


def test_jobs_that_another_worker_was_counting_are_counted(
    store: Store, clock: StoreClock, postgres_store_url: str, other: Any, thread: ThreadPoolExecutor
) -> None:
    """J16, R4: they were deleted uncounted if the worker that was adding them up was cut off."""
    succeeded(store)
    clock.advance(10)
    other.execute("SELECT detent.counts_fold_v1(100)")
    work = thread.submit(store.job_prune, clock.now(), None, 100, "ana")
    until(lambda: is_done_or_waits(postgres_store_url, work))
    other.rollback()
    assert work.result(scaled(60)).jobs == 1
    assert store.job_count(JobFilter()) == 0
    assert [(one.outcome, one.moves) for one in store.figures(clock.now())] == [("done", 1)]
    assert store.verify() == []


def test_a_limit_that_a_job_runs_under_since_a_moment_stays(
    store: Store, postgres_store_url: str, other: Any, thread: ThreadPoolExecutor
) -> None:
    """J12: a job claimed while retention looked at the limits lost its slot, so that one more could run."""
    store.limit_put(NewLimit(key="other", rate=1, burst=2, tasks=("other",)))
    enqueue(store, task="other", limit_key="a")
    claim_one(store, tasks=["other"])
    store.limit_put(NewLimit(key="mail.send", concurrency_max=1, tasks=("mail.send",)))
    succeeded(store, limit_key="b")
    run_sql(postgres_store_url, _HOLDS_UP, "DELETE FROM detent.limit_slot WHERE limit_key = 'b'")
    other.execute("SELECT pg_advisory_xact_lock(7)")
    work = thread.submit(store.limit_prune, "", 100)
    until(lambda: is_done_or_waits(postgres_store_url, work))
    job_id = enqueue(store, limit_key="b")
    claim_one(store)
    other.rollback()
    work.result(scaled(60))
    assert ("b", job_id) in {(key, job) for key, job, *_ in dump(postgres_store_url)["limit_slot"]}


def test_a_slot_that_a_claim_deletes_is_not_waited_for(
    store: Store, clock: StoreClock, postgres_store_url: str, other: Any, thread: ThreadPoolExecutor
) -> None:
    """J12, R4: retention and a claim that deleted slots of the same jobs waited for each other, until one was ended."""
    store.limit_put(NewLimit(key="mail.send", concurrency_max=1, tasks=("mail.send",)))
    succeeded(store)
    clock.advance(10)
    assert other.execute("DELETE FROM detent.limit_slot").rowcount == 1
    work = thread.submit(store.job_prune, clock.now(), None, 100, "ana")
    until(lambda: is_done_or_waits(postgres_store_url, work))
    is_done = work.done()
    other.commit()
    assert work.result(scaled(60)).jobs == 1
    assert is_done
    assert store.verify() == []
