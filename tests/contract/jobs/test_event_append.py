"""event_append: lines that a job writes, each once, in order, for ever."""

from __future__ import annotations

from typing import Any

import pytest

from detent.errors import LeaseLost, NotFound
from detent.model.records import Appended, EventRow, NewEvent
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim_one, enqueue, event, finish, job
from tests.contract.refusals import Untouched, refused


def note(job_id: int, message: str = "seen") -> NewEvent:
    return NewEvent(job_id=job_id, attempt=None, level="info", message=message)


def test_a_line_is_kept_as_it_was_given(store: Store, clock: StoreClock) -> None:
    """E1: level, message, payload, time, execution, sequence number."""
    job_id = enqueue(store)
    held = claim_one(store)
    clock.advance(1)
    line = event(held, "wrote Zoë", level="warning", payload='{"n":1.0}', key="k")
    assert store.event_append([line]) == [Appended(job_id, 1, True)]
    assert store.job_events(job_id) == [
        EventRow(
            job_id=job_id,
            seq=1,
            attempt=1,
            level="warning",
            message="wrote Zoë",
            payload='{"n":1.0}',
            key="k",
            at=clock.now(),
        )
    ]


def test_lines_count_from_one_without_gaps(store: Store, clock: StoreClock) -> None:
    """E1: within each job, over calls, over attempts."""
    enqueue(store)
    enqueue(store)
    first, second = claim_one(store, limit=1), claim_one(store, limit=1)
    answers = store.event_append([event(first, "a"), event(second, "b"), event(first, "c")])
    assert answers == [
        Appended(first.job_id, 1, True),
        Appended(second.job_id, 1, True),
        Appended(first.job_id, 2, True),
    ]
    abort(store, first, "released")
    again = claim_one(store)
    assert store.event_append([event(again, "d")]) == [Appended(first.job_id, 3, True)]
    assert [(line.attempt, line.message) for line in store.job_events(first.job_id)] == [(1, "a"), (1, "c"), (2, "d")]


def test_the_first_event_makes_the_attempt_run(store: Store, clock: StoreClock) -> None:
    """E2: and later ones change nothing about it."""
    job_id = enqueue(store)
    held = claim_one(store)
    clock.advance(3)
    store.event_append([event(held, "first")])
    began = clock.now()
    clock.advance(3)
    store.event_append([event(held, "second")])
    (execution,) = store.job_executions(job_id)
    assert (execution.state, execution.started_at) == ("in_progress", began)


def test_a_key_is_the_same_line_for_ever(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """E3: a retried append is not stored twice, whatever it says the second time; another job's key is its own."""
    job_id = enqueue(store)
    held = claim_one(store)
    assert store.event_append([event(held, "a", key="k")]) == [Appended(job_id, 1, True)]
    clock.advance(LEASE - 1)
    with untouched():
        assert store.event_append([event(held, "a", key="k")]) == [Appended(job_id, 1, False)]
        assert store.event_append([event(held, "b", key="k", level="error")]) == [Appended(job_id, 1, False)]
    enqueue(store)
    other = claim_one(store)
    assert store.event_append([event(other, "a", key="k")]) == [Appended(other.job_id, 1, True)]


def test_twice_in_one_call_is_one_line(store: Store) -> None:
    """E3"""
    job_id = enqueue(store)
    held = claim_one(store)
    keyed, bare = event(held, "a", key="k"), event(held, "b")
    assert store.event_append([keyed, keyed, bare, bare]) == [
        Appended(job_id, 1, True),
        Appended(job_id, 1, False),
        Appended(job_id, 2, True),
        Appended(job_id, 2, False),
    ]


def test_lines_that_read_alike_under_different_keys_are_both_kept(store: Store) -> None:
    """E3: also beside one without a key."""
    job_id = enqueue(store)
    held = claim_one(store)
    answers = store.event_append([event(held, key="1"), event(held, key="2"), event(held), event(held, key="3")])
    assert answers == [Appended(job_id, seq, True) for seq in (1, 2, 3, 4)]


def test_without_a_key_ten_seconds_make_it_the_same_line(store: Store, clock: StoreClock) -> None:
    """E3: the window of callers that have no keys counts from the line that was kept."""
    job_id = enqueue(store)
    held = claim_one(store)
    assert store.event_append([event(held)]) == [Appended(job_id, 1, True)]
    clock.advance(9.9)
    assert store.event_append([event(held)]) == [Appended(job_id, 1, False)]
    clock.advance(0.2)
    assert store.event_append([event(held)]) == [Appended(job_id, 2, True)]


@pytest.mark.parametrize("other", [{"message": "x"}, {"level": "error"}, {"payload": "1"}, {"payload": None}])
def test_another_line_is_no_repetition(store: Store, other: dict[str, Any]) -> None:
    """E3: equal means level, message and payload."""
    job_id = enqueue(store)
    held = claim_one(store)
    store.event_append([event(held, payload="0")])
    fields: dict[str, Any] = {"payload": "0"} | other
    assert store.event_append([event(held, **fields)]) == [Appended(job_id, 2, True)]


def test_anyone_may_leave_a_note(store: Store, clock: StoreClock) -> None:
    """A note goes to any job that exists, in whatever state, and starts nothing."""
    job_id = enqueue(store)
    assert store.event_append([note(job_id, "pending")]) == [Appended(job_id, 1, True)]
    held = claim_one(store)
    store.event_append([note(job_id, "running")])
    assert job(store, job_id).started_at is None
    finish(store, held)
    store.event_append([note(job_id, "succeeded")])
    assert [(line.attempt, line.message) for line in store.job_events(job_id)] == [
        (0, "pending"),
        (1, "running"),
        (1, "succeeded"),
    ]


def test_no_such_job(store: Store, untouched: Untouched) -> None:
    with untouched():
        (answer,) = store.event_append([note(10**12)])
    refused(answer, NotFound, entity="job", entity_id=str(10**12))


def test_a_zombies_line_is_refused_and_the_others_are_kept(store: Store, clock: StoreClock) -> None:
    """C4: a zombie cannot append an event as running; a keyed replay by it is refused as well."""
    job_id = enqueue(store)
    zombie = claim_one(store)
    store.event_append([event(zombie, "alive", key="k")])
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    held = claim_one(store)
    answers = store.event_append([event(zombie, "late"), event(held, "mine"), event(zombie, "alive", key="k")])
    refused(answers[0], LeaseLost, job_id=job_id, attempt=1, found="attempt 2 is current")
    assert answers[1] == Appended(job_id, 2, True)
    refused(answers[2], LeaseLost, job_id=job_id, attempt=1, found="attempt 2 is current")
    assert [line.message for line in store.job_events(job_id)] == ["alive", "mine"]
