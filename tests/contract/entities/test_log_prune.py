"""log_prune: the record of what is no job is kept for a time; the newest line of each entity stays."""

from __future__ import annotations

from datetime import timedelta

from detent.model.service_records import LinesPruned
from detent.store.contract import Store
from detent.testing.stores import StoreClock, dump
from tests.contract.jobs.sample_jobs import enqueue, state


def pauses(store: Store, queue: str, times: int) -> None:
    for _ in range(times):
        store.queue_pause(queue, "ana")
        store.queue_resume(queue, "ana")


def test_old_lines_of_an_entity_go_but_the_newest(store: Store, clock: StoreClock) -> None:
    """E4, E5: within retention its past is told as before."""
    pauses(store, "mail", 3)
    store.queue_pause("old", "bob", "for good")
    clock.advance(timedelta(days=1))
    horizon = clock.now()
    clock.advance(1)
    pauses(store, "mail", 1)
    assert store.log_prune(horizon, 0, 100, "retention") == LinesPruned(5, None)
    lines = [(line.to_state, line.at >= horizon) for line in store.transitions("queue", "mail")]
    assert lines == [("open", False), ("paused", True), ("open", True)]
    assert [line.reason for line in store.transitions("queue", "old")] == ["for good"]
    assert store.state_as_of("queue", "mail", horizon) == "open"
    assert store.state_as_of("queue", "old", clock.now()) == "paused"
    assert store.log_prune(horizon, 0, 100, "retention") == LinesPruned(0, None)


def test_in_small_portions(store: Store, clock: StoreClock) -> None:
    """J16: each call looks at a bounded number of lines; where all are young, the walk ends."""
    pauses(store, "mail", 4)
    horizon = clock.advance(10)
    clock.advance(1)
    pauses(store, "mail", 50)
    after, calls, gone = 0, 0, 0
    while True:
        went = store.log_prune(horizon, after, 3, "retention")
        gone, calls = gone + went.lines, calls + 1
        if went.next is None:
            break
        assert went.next > after
        after = went.next
    assert gone == 7
    assert calls <= 5


def test_lines_of_jobs_stay_with_their_jobs(store: Store, clock: StoreClock) -> None:
    """E1: retention of jobs takes those."""
    job_id = enqueue(store)
    store.job_cancel([job_id], "ana")
    store.job_retry([job_id], "ana")
    horizon = clock.advance(10)
    assert store.log_prune(horizon, 0, 100, "retention") == LinesPruned(0, None)
    assert len(store.transitions("job", str(job_id))) == 3
    assert state(store, job_id) == "pending"


def test_horizons_do_not_pile_up(store: Store, store_url: str, clock: StoreClock) -> None:
    """J16: each hour leaves one; those from before the horizon of the log go, but never the newest."""
    start = clock.now()
    for hour in range(1, 10):
        clock.advance(timedelta(hours=1))
        store.job_prune(start + timedelta(hours=hour) - timedelta(minutes=30), None, 1, "retention")
    assert len(dump(store_url)["horizon"]) == 9
    store.log_prune(start + timedelta(hours=5), 0, 100, "retention")
    assert len(dump(store_url)["horizon"]) == 5
    store.log_prune(start + timedelta(days=1), 0, 100, "retention")
    assert len(dump(store_url)["horizon"]) == 1
    clock.advance(timedelta(days=2))
    store.log_prune(start, 0, 100, "retention")
    assert len(dump(store_url)["horizon"]) == 1
