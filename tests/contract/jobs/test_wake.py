"""The wake: whoever waits for work is told that some may have come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

from detent.store.contract import Store
from detent.store.jobs.contract import ClaimTerms
from detent.testing.stores import StoreClock, another_store, plain_connection
from tests.contract.jobs.sample_jobs import enqueue, quarantined

PATIENCE = 60.0
"""Seconds after which a wait that nobody ends is a failure."""


def woken_by(store: Store, act: Callable[[], object]) -> bool:
    """Whether `act`, done while somebody waits, ends the wait."""
    version = store.wake.version()
    actor = threading.Thread(target=act)
    actor.start()
    woken = store.wake.wait(version, PATIENCE)
    actor.join()
    return woken


def test_an_enqueue_wakes(store: Store, store_url: str, clock: StoreClock) -> None:
    """W1: by another process, as it were."""
    with closing(another_store(store_url, clock)) as elsewhere:
        assert woken_by(store, lambda: enqueue(elsewhere))


def test_it_wakes_again_and_again(store: Store, store_url: str, clock: StoreClock) -> None:
    with closing(another_store(store_url, clock)) as elsewhere:
        for _ in range(3):
            assert woken_by(store, lambda: enqueue(elsewhere))


def test_an_enqueue_on_the_callers_connection_wakes(store: Store, store_url: str) -> None:
    """When the caller commits, and not before."""

    def enqueue_and_commit() -> None:
        with closing(plain_connection(store_url)) as connection:
            enqueue(store.on(connection))
            connection.commit()

    assert woken_by(store, enqueue_and_commit)


def test_a_retry_and_a_promotion_wake(store: Store, store_url: str, clock: StoreClock) -> None:
    dead = quarantined(store)
    with closing(another_store(store_url, clock)) as elsewhere:
        assert woken_by(store, lambda: elsewhere.job_retry([dead], "ana"))
        enqueue(store, due_at=clock.now() + timedelta(seconds=5))
        clock.advance(5)
        assert woken_by(store, lambda: elsewhere.job_promote(10))


def test_what_came_between_version_and_wait_is_not_missed(store: Store, store_url: str, clock: StoreClock) -> None:
    version = store.wake.version()
    with closing(another_store(store_url, clock)) as elsewhere:
        enqueue(elsewhere)
    assert store.wake.wait(version, PATIENCE)


def test_what_has_woken_is_old_news_to_the_next_wait(store: Store, store_url: str, clock: StoreClock) -> None:
    """W1: else a worker that was woken once would never come to rest."""
    with closing(another_store(store_url, clock)) as elsewhere:
        assert woken_by(store, lambda: enqueue(elsewhere))
    store.wake.interrupt()
    assert not store.wake.wait(store.wake.version(), 0.2)


def test_an_interrupt_ends_the_wait(store: Store) -> None:
    """W1: a worker that is told to stop does not sit out its wait."""
    version = store.wake.version()
    waiter = threading.Thread(target=store.wake.wait, args=(version, 2 * PATIENCE), daemon=True)
    waiter.start()
    store.wake.interrupt()
    waiter.join(PATIENCE)
    assert not waiter.is_alive()


def test_an_enqueue_in_the_same_process_wakes(store: Store) -> None:
    """W1: an application that works where it enqueues."""
    assert woken_by(store, lambda: enqueue(store))


def test_a_claim_made_ready_before_there_is_work_takes_what_has_come(store: Store) -> None:
    """W1: and holds it under the lease that it was given ahead."""
    terms = ClaimTerms(lease_id=7, worker="w", queues=None, tasks=["mail.send"], limit=10, lease=30.0)
    version = store.wake.version()
    claim = store.claim_ahead(**terms)
    actor = threading.Thread(target=enqueue, args=(store,), kwargs={"task": "mail.send"})
    actor.start()
    assert store.wake.wait(version, PATIENCE)
    actor.join()
    (job,) = claim()
    assert [one.job_id for one in store.claim_find(7)] == [job.job_id]
    assert store.claim_ahead(**terms)() == []


def test_a_claim_made_ready_and_not_sent_takes_nothing(store: Store) -> None:
    enqueue(store, task="mail.send")
    store.claim_ahead(lease_id=7, worker="w", queues=None, tasks=["mail.send"], limit=10, lease=30.0)
    assert store.claim_find(7) == []
