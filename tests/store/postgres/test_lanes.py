"""An enqueue does not wait for the open transactions of other callers."""

from __future__ import annotations

from contextlib import closing

from detent.model.records import Enqueued
from detent.store.jobs.filters import JobSearch
from detent.store.open import open_store
from detent.testing.stores import plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import enqueue, new_job


def test_a_callers_open_transaction_keeps_nobody_from_a_new_lane(postgres_ready_url: str) -> None:
    """J2: a lane made inside the caller's transaction would let everybody else who needs it wait until its end."""
    with closing(open_store(postgres_ready_url)) as store, closing(plain_connection(postgres_ready_url)) as caller:
        store.ready()
        first = new_job(store, queue="brand-new")
        assert store.on(caller).job_enqueue([first]) == [Enqueued(first.id, True)]
        second = new_job(store, queue="brand-new")
        assert store.job_enqueue([second]) == [Enqueued(second.id, True)]
        caller.rollback()
        assert store.job_get([first.id]) == [None]


def test_calls_of_one_microsecond_do_not_wait_for_each_other(postgres_ready_url: str) -> None:
    """J2: the clock stands still, so both calls create jobs at one time, with numbers of one block (`job_span`)."""
    with turnable_store(postgres_ready_url) as (store, _), closing(plain_connection(postgres_ready_url)) as caller:
        there = enqueue(store)
        first, second, third = (new_job(store) for _ in range(3))
        assert len(store.on(caller).job_enqueue([first, third])) == 2
        assert store.job_enqueue([second]) == [Enqueued(second.id, True)]
        caller.commit()
        everything = [third.id, second.id, first.id, there]
        assert [row.id for row in store.job_list(JobSearch()).rows] == everything
        pages = [store.job_list(JobSearch(), None, 1)]
        while (after := pages[-1].next) is not None:
            pages.append(store.job_list(JobSearch(), after, 1))
        assert [row.id for page in pages for row in page.rows] == everything
