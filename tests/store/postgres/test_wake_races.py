"""Signals, children and parking at the same moment: whoever comes second sees the first, and nobody waits for long.

The order is forced by open transactions on a second connection; one test lets two threads race.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Barrier
from typing import Any

import pytest

from detent.model.records import Finish
from detent.model.workflow_records import Arrived, NewSignal, Parked, SignalSent
from detent.store.contract import Store
from detent.testing.stores import plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import claim, claim_one
from tests.contract.workflows.sample_workflows import (
    begin,
    children,
    is_sent,
    is_spawned,
    look,
    park,
    parked_for_signal,
    record,
    send,
    signal,
    spawn,
)
from tests.deadlines import scaled, until
from tests.store.postgres.connections import run_sql

ROUNDS = 100
_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
_REQUESTS = "SELECT job_id FROM detent.wake_request ORDER BY n"


@pytest.fixture
def store(postgres_store_url: str) -> Iterator[Store]:
    with turnable_store(postgres_store_url) as (store, _clock):
        yield store
        assert store.verify() == []


@pytest.fixture
def other(postgres_store_url: str) -> Iterator[Any]:
    with closing(plain_connection(postgres_store_url)) as connection:
        yield connection


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


def waits(url: str, work: Future[Any]) -> None:
    """Until the work waits for a lock, or is done."""
    until(lambda: work.done() or bool(run_sql(url, _WAITS)))


def test_a_signal_to_a_workflow_that_is_parking_does_not_wait(store: Store, other: Any) -> None:
    """A park that has looked into the mailbox and not committed: a request is left, and carried out after it."""
    held = begin(store)
    assert park(store.on(other), held, signal()) == Parked(held.job_id, 1)
    is_sent(send(store, held.job_id))
    assert store.workflow_wake(10) == 0, "the job is still locked"
    assert claim(store) == []
    other.commit()
    assert [one.job_id for one in store.wait_list().rows] == [held.job_id]
    assert store.workflow_wake(10) == 1
    again = claim_one(store)
    assert again.job_id == held.job_id
    assert isinstance(look(store, again, signal()), Arrived)


def test_a_park_waits_for_a_signal_that_was_sent_before(
    store: Store, other: Any, threads: ThreadPoolExecutor, postgres_store_url: str
) -> None:
    """A sender that has seen the job running and not committed: the park waits for it, and reads the mailbox again."""
    held = begin(store)
    is_sent(send(store.on(other), held.job_id))
    work = threads.submit(park, store, held, signal())
    waits(postgres_store_url, work)
    assert not work.done()
    other.commit()
    assert work.result(scaled(60)) == Parked(held.job_id, 1)
    assert run_sql(postgres_store_url, _REQUESTS) == []
    assert claim_one(store).job_id == held.job_id


def test_a_sender_apart_keeps_nobody_waiting(store: Store, other: Any, postgres_store_url: str) -> None:
    """A caller's transaction stays open: the workflow parks, others send to it, and it is woken when the caller has
    committed."""
    held = begin(store)
    verbs = store.on(other)
    (sent,) = verbs.signal_send([NewSignal(job_id=held.job_id, name="go", payload="1", actor="bob")], apart=True)
    assert isinstance(sent, SignalSent)
    assert park(store, held, signal()) == Parked(held.job_id, 1)
    assert store.workflow_wake(10) == 0
    is_sent(send(store, held.job_id, "another"))
    assert claim(store) == []
    other.commit()
    assert run_sql(postgres_store_url, _REQUESTS) == [(held.job_id,)]
    assert store.workflow_wake(10) == 1
    assert claim_one(store).job_id == held.job_id


def test_a_locked_queue_row_is_not_waited_for(store: Store, other: Any) -> None:
    """A promoter or a person may hold the row of a parked workflow."""
    job_id = parked_for_signal(store)
    other.execute("SELECT 1 FROM detent.waiting WHERE job_id = %s FOR UPDATE", (job_id,))
    is_sent(send(store, job_id))
    assert (store.workflow_wake(10), claim(store)) == (0, [])
    other.rollback()
    assert store.workflow_wake(10) == 1
    assert claim_one(store).job_id == job_id


def test_the_same_dedupe_in_two_transactions_is_one_signal(
    store: Store, other: Any, threads: ThreadPoolExecutor, postgres_store_url: str
) -> None:
    held = begin(store)
    first = is_sent(send(store.on(other), held.job_id, dedupe="d"))
    work = threads.submit(send, store, held.job_id, dedupe="d")
    waits(postgres_store_url, work)
    other.commit()
    assert work.result(scaled(60)) == SignalSent(held.job_id, first.seq, False)


def test_a_signal_in_the_moment_of_parking_is_never_lost(store: Store, threads: ThreadPoolExecutor) -> None:
    """F5: two connections, many rounds; afterwards the workflow is awake every time."""
    for number in range(ROUNDS):
        held = begin(store)
        start = Barrier(2)

        def both(work: Any, start: Barrier = start) -> Any:
            start.wait(scaled(60))
            return work()

        parking = threads.submit(both, lambda held=held: park(store, held, signal()))
        sending = threads.submit(both, lambda held=held: send(store, held.job_id))
        assert parking.result(scaled(60)) == Parked(held.job_id, 1)
        is_sent(sending.result(scaled(60)))
        store.workflow_wake(10)
        again = claim(store, limit=10)
        assert [one.job_id for one in again] == [held.job_id], f"lost in round {number}"
        assert isinstance(look(store, again[0], signal()), Arrived)
        store.job_finish([Finish(held.job_id, 2)], "ana")


def test_the_last_child_ends_while_its_parent_parks(store: Store, other: Any) -> None:
    held = begin(store)
    is_spawned(spawn(store, held, 1))
    child = claim_one(store, tasks=["mail.child"])
    assert park(store.on(other), held, children()) == Parked(held.job_id, 1)
    store.job_finish([Finish(child.job_id, 1)], "bob")
    assert (store.workflow_wake(10), claim(store)) == (0, [])
    other.commit()
    assert store.workflow_wake(10) == 1
    assert claim_one(store).job_id == held.job_id


def test_a_parent_parks_while_its_last_child_ends(
    store: Store, other: Any, threads: ThreadPoolExecutor, postgres_store_url: str
) -> None:
    held = begin(store)
    is_spawned(spawn(store, held, 1))
    child = claim_one(store, tasks=["mail.child"])
    store.on(other).job_finish([Finish(child.job_id, 1)], "bob")
    work = threads.submit(park, store, held, children())
    waits(postgres_store_url, work)
    assert not work.done()
    other.commit()
    assert work.result(scaled(60)) == Parked(held.job_id, 1)
    assert claim_one(store).job_id == held.job_id


def test_the_second_writer_of_a_step_takes_over_the_first(
    store: Store, other: Any, threads: ThreadPoolExecutor, postgres_store_url: str
) -> None:
    """F4: the primary key decides, also between transactions."""
    held = begin(store)
    record(store, held, "first")
    record(store.on(other), held, "a", seq=2, value='"theirs"')
    work = threads.submit(record, store, held, "a", seq=2, value='"ours"')
    waits(postgres_store_url, work)
    other.commit()
    found = work.result(scaled(60))
    assert (found.created, found.value) == (False, '"theirs"')
