"""`rates`: moves of jobs by minute or hour, with how long they waited and ran; `counts_fold` adds them up."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.model.figure_records import RateCount
from detent.model.records import Abort, Finish
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock
from tests.contract.jobs.sample_jobs import claim_one, enqueue

MINUTE, HOUR = 60, 3600


def ended(store: Store, clock: StoreClock, *, waits: float = 2.0, runs: float = 3.0, outcome: str = "done") -> None:
    """One attempt that waited and ran for so long."""
    enqueue(store, attempts_max=5)
    clock.advance(waits)
    held = claim_one(store)
    store.job_start([(held.job_id, held.attempt)])
    clock.advance(runs)
    if outcome == "done":
        store.job_finish([Finish(held.job_id, held.attempt)], "ana")
    else:
        store.job_abort([Abort(job_id=held.job_id, attempt=held.attempt, outcome=outcome, fatal=True)], "ana")  # type: ignore[arg-type]


def fold(store: Store) -> None:
    while store.counts_fold(10):
        pass


def moves(counts: list[RateCount]) -> dict[tuple[int, str, str], int]:
    """By minutes since the start, state and outcome."""
    found: dict[tuple[int, str, str], int] = {}
    for one in counts:
        key = (int((one.at - START).total_seconds() // 60), one.to_state, one.outcome)
        found[key] = found.get(key, 0) + one.moves
    return found


@pytest.mark.parametrize("is_folded", [False, True])
def test_moves_are_counted_by_minute(store: Store, clock: StoreClock, is_folded: bool) -> None:
    """M1: the same before and after they are added up."""
    ended(store, clock)
    ended(store, clock, outcome="error")
    clock.set(START + timedelta(minutes=3))
    ended(store, clock)
    store.job_cancel([enqueue(store)], "ana")
    if is_folded:
        fold(store)
    found = store.rates(START, MINUTE)
    assert moves(found) == {
        (0, "running", ""): 2,
        (0, "succeeded", "done"): 1,
        (0, "quarantined", "error"): 1,
        (3, "running", ""): 1,
        (3, "succeeded", "done"): 1,
        (3, "cancelled", ""): 1,
    }
    waited = [one for one in found if one.to_state == "running"]
    assert {(one.bucket, one.us // one.moves, one.us_max) for one in waited} == {(1_800_000, 2_000_000, 2_000_000)}
    ran = [one for one in found if one.outcome]
    assert {(one.bucket, one.us, one.us_max) for one in ran} == {(2_700_000, 3_000_000, 3_000_000)}
    assert store.rates(START + timedelta(minutes=1), MINUTE) == [one for one in found if one.at > START]
    assert store.verify() == []


def test_by_hour(store: Store, clock: StoreClock) -> None:
    ended(store, clock)
    clock.set(START + timedelta(minutes=59))
    ended(store, clock)
    fold(store)
    assert moves(store.rates(START, HOUR)) == {(0, "running", ""): 2, (0, "succeeded", "done"): 2}


def test_minutes_are_joined_to_hours_and_then_go(store: Store, clock: StoreClock) -> None:
    """J16: no more is kept than six hours of minutes and 31 days of hours, and nothing changes by joining them."""
    for minute in (0, 7, 30):
        clock.set(START + timedelta(minutes=minute))
        ended(store, clock, outcome="error" if minute else "done")
    fold(store)
    clock.set(START + timedelta(hours=6, minutes=59))
    fold(store)
    assert {minute for minute, _, _ in moves(store.rates(START, MINUTE))} == {0, 7, 30}
    before = store.rates(START, HOUR)
    clock.set(START + timedelta(hours=7))
    fold(store)
    assert {minute for minute, _, _ in moves(store.rates(START, MINUTE))} == {0}
    assert store.rates(START, HOUR) == before
    assert store.verify() == []
    clock.set(START + timedelta(days=31, hours=1))
    fold(store)
    assert store.rates(START, HOUR) == []
    assert store.verify() == []


def test_a_move_of_an_hour_that_is_joined_is_added_to_it(store: Store, clock: StoreClock) -> None:
    """No worker was alive for hours: what ended before is added up late."""
    ended(store, clock)
    fold(store)
    ended(store, clock)
    clock.set(START + timedelta(hours=8))
    fold(store)
    fold(store)
    assert moves(store.rates(START, MINUTE)) == {(0, "running", ""): 2, (0, "succeeded", "done"): 2}
    assert store.verify() == []


def test_an_attempt_that_never_called_its_function(store: Store, clock: StoreClock) -> None:
    enqueue(store)
    held = claim_one(store)
    store.job_abort([Abort(job_id=held.job_id, attempt=held.attempt, outcome="released")], "ana")
    for _ in range(2):
        (ran,) = [one for one in store.rates(START, MINUTE) if one.outcome]
        assert (ran.bucket, ran.us) == (-1, 0)
        fold(store)
