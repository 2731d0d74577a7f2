"""figures: how often jobs moved from state to state, and how long that took. Adding moves up does not change them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from detent.model.figure_records import TransitionCount
from detent.model.records import Abort, Finish
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, finish, quarantined, succeeded

DAY = timedelta(days=1)


def found(store: Store, task: str | None = None) -> list[TransitionCount]:
    """The figures of the last day, which adding up does not change."""
    before = store.figures(store.now() - DAY, task)
    while store.counts_fold(1):
        assert store.figures(store.now() - DAY, task) == before
    assert store.figures(store.now() - DAY, task) == before
    return before


def moves(store: Store) -> Counter[tuple[str, str, str]]:
    """How many moves there were, by states and outcome."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for one in found(store):
        counted[one.from_state, one.to_state, one.outcome] += one.moves
    return counted


def test_an_attempt_counts_with_its_times(store: Store, clock: StoreClock) -> None:
    """M1: the time in the queue, the time under the lease and the time of the function, to the microsecond."""
    enqueue(store)
    clock.advance(2)
    held = claim_one(store)
    clock.advance(0.5)
    store.job_start([(held.job_id, held.attempt)])
    clock.advance(0.123456)
    finish(store, held)
    assert found(store) == [
        TransitionCount(
            *("mail.send", "running", "succeeded", "done", 120_000, 1),
            *(623_456, 623_456, 123_456, 123_456, 2_000_000, 2_000_000),
        )
    ]
    enqueue(store)
    held = claim_one(store)
    clock.advance(0.1)
    assert abort(store, held, "timed_out", delay=60.0)
    (failed,) = [one for one in found(store) if one.outcome == "timed_out"]
    assert failed == TransitionCount(
        *("mail.send", "running", "pending", "timed_out", -1, 1, 100_000, 100_000, 0, 0, 0, 0)
    ), "a function that was not called has no duration"
    clock.advance(100)
    store.job_promote(10)
    finish(store, claim_one(store))
    waited = max(one.waited_us_max for one in found(store))
    assert waited == 40_000_000, "a retry waits from when it is due, not from the end of the attempt before"


def test_every_move_counts(store: Store, clock: StoreClock) -> None:
    """M1: those of attempts, of people, of the reaper and of expiry; a request to cancel is no move."""
    succeeded(store)
    dead = quarantined(store)
    clock.advance(7)
    store.job_retry([dead], "ana")
    assert max(one.held_us_max for one in found(store) if one.from_state == "quarantined") == 7_000_000
    store.job_cancel([dead], "ana")
    enqueue(store, expires_at=store.now() + timedelta(seconds=1))
    clock.advance(2)
    store.job_expire(10)
    asked = enqueue(store)
    held = claim_one(store)
    store.job_cancel([asked], "ana")
    abort(store, held, "cancelled")
    enqueue(store)
    claim(store)
    clock.advance(100)
    store.lease_reap(10)
    assert moves(store) == {
        ("running", "succeeded", "done"): 1,
        ("running", "quarantined", "error"): 1,
        ("quarantined", "pending", ""): 1,
        ("pending", "cancelled", ""): 2,
        ("running", "cancelled", "cancelled"): 1,
        ("running", "pending", "expired"): 1,
    }


def test_many_that_end_together(store: Store, clock: StoreClock) -> None:
    """M1: by task and bucket; of one task only, if asked for."""
    for number in range(30):
        enqueue(store, task=("mail.send", "mail.sort")[number % 2])
    held = claim(store, tasks=["mail.send", "mail.sort"])
    clock.advance(1)
    store.job_finish([Finish(one.job_id, one.attempt, None, 1 - at / 30) for at, one in enumerate(held)], "ana")
    assert {one.task for one in found(store)} == {"mail.send", "mail.sort"}
    mine = found(store, task="mail.sort")
    assert {one.task for one in mine} == {"mail.sort"}
    assert sum(one.moves for one in mine) == 15
    assert len(mine) > 3
    for one in mine:
        assert one.bucket <= one.ran_us / one.moves <= one.ran_us_max < max(1.25 * one.bucket, 1)


def test_a_time_is_in_its_bucket(store: Store, clock: StoreClock) -> None:
    """M1: a bucket's longest time is less than 1.25 times its shortest, and both databases have the same buckets."""
    times = (0, 1, 9, 10, 11, 12, 99, 100, 101, 149, 150, 819, 820, 999, 1_000_000, 86_399_999_999)
    for us in times:
        enqueue(store, task=f"t{us}")
        held = claim_one(store, lease=1e6, tasks=[f"t{us}"])
        store.job_start([(held.job_id, held.attempt)])
        clock.advance(us / 1e6)
        finish(store, held)
    steps = [step * 10**power for power in range(12) for step in (10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82)]
    expected = {f"t{us}": (us, max(number for number in (*range(10), *steps) if number <= us)) for us in times}
    assert {one.task: (one.ran_us, one.bucket) for one in found(store)} == expected


def test_hours_before_are_left_out_and_go_after_31_days(store: Store, clock: StoreClock) -> None:
    """M1: figures begin with an hour, and hours do not stay for ever."""
    succeeded(store)
    clock.advance(3600 * 5)
    succeeded(store)
    assert sum(one.moves for one in store.figures(store.now() - timedelta(hours=4))) == 1
    assert sum(one.moves for one in found(store)) == 2
    clock.advance(86_400 * 31 - 3600)
    succeeded(store)
    store.counts_fold(1)
    everything = store.now() - timedelta(days=60)
    assert sum(one.moves for one in store.figures(everything)) == 2
    clock.advance(86_400 * 40)
    store.counts_fold(1)
    assert sum(one.moves for one in store.figures(everything)) == 1, "one hour goes at a time"
    store.counts_fold(1)
    assert store.figures(everything) == []


def test_a_crash_while_moves_are_added_up_counts_nothing_twice(store: Store) -> None:
    """R4: the moves go in the transaction that adds them."""
    succeeded(store)
    quarantined(store)
    store.job_cancel([enqueue(store)], "ana")
    before = store.figures(store.now() - DAY)

    def crash(verbs: object) -> None:
        assert verbs.counts_fold(100) > 0  # type: ignore[attr-defined]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.together(crash)
    assert store.figures(store.now() - DAY) == before
    assert found(store) == before


def test_jobs_that_are_gone_have_counted(store: Store, clock: StoreClock) -> None:
    """M1: retention deletes jobs whose moves are not added up yet."""
    succeeded(store)
    enqueue(store)
    held = claim_one(store)
    store.job_abort([Abort(job_id=held.job_id, attempt=held.attempt, outcome="error", fatal=True)], "ana")
    before = store.figures(store.now() - DAY)
    clock.advance(60)
    store.job_prune(store.now(), None, 100, "ana")
    assert store.job_get([held.job_id]) == [None]
    assert found(store) == before


def test_until_leaves_out_later_hours(store: Store, clock: StoreClock) -> None:
    begin = store.now()
    succeeded(store)
    clock.advance(3600)
    succeeded(store)
    for _ in range(2):
        (first,) = store.figures(begin, until=store.now())
        assert first.moves == 1
        assert sum(one.moves for one in store.figures(begin)) == 2
        store.counts_fold(10)
