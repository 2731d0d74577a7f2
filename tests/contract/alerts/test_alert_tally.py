"""alert_tally: the jobs that came to rest, counted once each."""

from __future__ import annotations

import threading

from detent.model.alert_records import Figure
from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store
from tests.contract.alerts.sample_policies import rested
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, enqueue

HOUR = 3600.0


def rates(store: Store, each: str = "queue") -> list[Figure]:
    return store.alert_figures("success_rate", "task" if each == "task" else "queue", HOUR)


def rest(store: Store, clock: StoreClock, *, succeeded: int, failed: int, queue: str = "default") -> None:
    """Run jobs to their end: some succeed, some fail."""
    clock.advance(0.1)
    rested(store, succeeded=succeeded, failed=failed, queue=queue)


def test_each_is_counted_once_by_queue_and_task(store: Store, clock: StoreClock) -> None:
    """M1, M2: succeeded against failed and quarantined."""
    assert store.alert_tally(1000) == 0
    clock.advance(1)
    rest(store, clock, succeeded=3, failed=1)
    rest(store, clock, succeeded=0, failed=2, queue="mail")
    assert store.alert_tally(1000) == 6
    assert store.alert_tally(1000) == 0
    clock.advance(1)
    rest(store, clock, succeeded=4, failed=0)
    assert store.alert_tally(1000) == 4
    assert rates(store) == [Figure("default", 7 / 8, 8), Figure("mail", 0.0, 2)]
    assert rates(store, "task") == [Figure("mail.send", 0.7, 10)]


def test_what_failed_before_the_first_look_is_counted(store: Store, clock: StoreClock) -> None:
    """M2: jobs that failed before the first worker came to look are bad news too."""
    rest(store, clock, succeeded=1, failed=3)
    clock.advance(1)
    assert store.alert_tally(1000) == 4
    assert rates(store) == [Figure("default", 0.25, 4)]
    assert store.alert_tally(1000) == 0


def test_what_is_tried_again_or_cancelled_is_not_counted(store: Store, clock: StoreClock) -> None:
    """M2: only what has come to its end, and whether by its own fault."""
    store.alert_tally(1000)
    clock.advance(1)
    enqueue(store, attempts_max=3)
    enqueue(store)
    first, second = claim(store)
    clock.advance(0.1)
    abort(store, first, "error", delay=60)
    store.job_cancel([second.job_id], "ana")
    abort(store, second, "cancelled")
    assert store.alert_tally(1000) == 0


def test_whose_worker_died_failed_too(store: Store, clock: StoreClock) -> None:
    """M2: its lease is gone when it is counted."""
    store.alert_tally(1000)
    enqueue(store, attempts_max=1)
    claim(store)
    clock.advance(LEASE + 1)
    assert store.lease_reap(10).leases == 1
    assert store.alert_tally(1000) == 1
    assert rates(store) == [Figure("default", 0.0, 1)]


def test_of_very_many_some_stand_for_all(store: Store, clock: StoreClock) -> None:
    """M2: the number of jobs looked at is bounded, and the rate still about right."""
    store.alert_tally(1000)
    clock.advance(1)
    rest(store, clock, succeeded=300, failed=100)
    counted = store.alert_tally(100)
    assert 200 <= counted <= 600
    ((figure),) = rates(store)
    assert 0.55 <= figure.value <= 0.95


def test_two_at_once_count_nothing_twice(store: Store, clock: StoreClock, store_url: str) -> None:
    """M2: any number of workers may look."""
    store.alert_tally(1000)
    clock.advance(1)
    rest(store, clock, succeeded=20, failed=0)
    stores = [another_store(store_url, clock) for _ in range(2)]
    gate = threading.Barrier(2)
    counted: list[int] = []

    def look(mine: Store) -> None:
        gate.wait()
        counted.append(mine.alert_tally(1000))

    threads = [threading.Thread(target=look, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in stores:
        one.close()
    assert sorted(counted) == [0, 20]


def test_counts_older_than_a_day_go(store: Store, clock: StoreClock) -> None:
    """M2: it stays small."""
    store.alert_tally(1000)
    clock.advance(1)
    rest(store, clock, succeeded=2, failed=0)
    store.alert_tally(1000)
    clock.advance(86_400 + 120)
    store.alert_tally(1000)
    assert store.alert_figures("success_rate", "whole", 10 * 86_400) == []
