"""limit_reset, and what it ends: the pause and the breaker that a throttled attempt leads to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.errors import NotFound
from detent.model.limit_records import LimitRow, NewLimit
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, finish, job
from tests.contract.refusals import Untouched, refused

IN_A_ROW = 6
OPEN_FOR = 60


@pytest.fixture(name="limited")
def under_a_limit(store: Store) -> Store:
    store.limit_put(NewLimit(key="shop", concurrency_max=3, tasks=("mail.send",)))
    return store


def the_limit(store: Store) -> LimitRow:
    (row,) = store.limit_list()
    return row


def throttled(store: Store, clock: StoreClock, times: int, delay: float = 1) -> None:
    """That many attempts in a row to which the other side says no."""
    for _ in range(times):
        abort(store, claim_one(store, limit=1), "throttled", delay=delay)
        clock.advance(delay)
        store.job_promote(10)


def test_a_throttled_attempt_pauses_the_limit_for_everybody(limited: Store, clock: StoreClock) -> None:
    """B5, B9: nobody asks again before the time that the other side gave; no attempt is used up, no slot held."""
    first, other = enqueue(limited), enqueue(limited)
    abort(limited, claim_one(limited, limit=1), "throttled", delay=20)
    assert the_limit(limited).paused_until == limited.now() + timedelta(seconds=20)
    assert claim(limited, worker="bob") == []
    assert (job(limited, first).spared, the_limit(limited).running) == (1, 0)
    clock.advance(20)
    limited.job_promote(10)
    assert [one.job_id for one in claim(limited, worker="bob")] == [other, first]


def test_a_shorter_pause_does_not_end_a_longer_one(limited: Store) -> None:
    for _ in range(2):
        enqueue(limited)
    one, two = claim(limited)
    abort(limited, one, "throttled", delay=20)
    abort(limited, two, "throttled", delay=5)
    assert the_limit(limited).paused_until == limited.now() + timedelta(seconds=20)


def test_tasks_of_other_limits_are_not_paused(limited: Store) -> None:
    """A queue's limit is no word of the other side: its other tasks go on."""
    limited.limit_put(NewLimit(key="queue", concurrency_max=9, queues=("default",)))
    enqueue(limited)
    abort(limited, claim_one(limited), "throttled", delay=20)
    enqueue(limited, task="other")
    assert len(claim(limited, tasks=["mail.send", "other"])) == 1


def test_more_than_five_in_a_row_open_the_breaker(limited: Store, clock: StoreClock) -> None:
    """B5: for a minute nobody tries; then one does, and its success closes it."""
    for _ in range(3):
        enqueue(limited)
    throttled(limited, clock, IN_A_ROW - 1)
    assert the_limit(limited).open_until is None
    throttled(limited, clock, 1)
    assert the_limit(limited).open_until == limited.now() + timedelta(seconds=OPEN_FOR - 1)
    assert claim(limited) == []
    clock.advance(OPEN_FOR)
    tries = claim_one(limited)
    assert claim(limited, worker="bob") == []
    finish(limited, tries)
    assert len(claim(limited)) == 2
    assert (the_limit(limited).throttled, the_limit(limited).open_until) == (0, None)


def test_one_that_tries_and_is_refused_opens_it_again(limited: Store, clock: StoreClock) -> None:
    enqueue(limited)
    throttled(limited, clock, IN_A_ROW)
    clock.advance(OPEN_FOR)
    abort(limited, claim_one(limited), "throttled", delay=1)
    assert the_limit(limited).open_until == limited.now() + timedelta(seconds=OPEN_FOR)


def test_one_that_tries_and_dies_lets_another_try(limited: Store, clock: StoreClock) -> None:
    enqueue(limited)
    throttled(limited, clock, IN_A_ROW)
    clock.advance(OPEN_FOR)
    claim_one(limited)
    clock.advance(31)
    limited.lease_reap(10)
    assert claim_one(limited)


def test_a_success_in_between_begins_the_count_anew(limited: Store, clock: StoreClock) -> None:
    for _ in range(2):
        enqueue(limited)
    throttled(limited, clock, IN_A_ROW - 1)
    finish(limited, claim_one(limited, limit=1))
    throttled(limited, clock, 1)
    assert (the_limit(limited).throttled, the_limit(limited).open_until) == (1, None)


def test_aborting_again_counts_once(limited: Store, untouched: Untouched) -> None:
    enqueue(limited)
    held = claim_one(limited)
    abort(limited, held, "throttled", delay=1)
    with untouched():
        abort(limited, held, "throttled", delay=1)


def test_a_reset_ends_pause_and_breaker_and_is_on_record(limited: Store, clock: StoreClock) -> None:
    enqueue(limited)
    throttled(limited, clock, IN_A_ROW)
    assert limited.limit_reset("shop", "ana", "they are back") == Moved("shop", "closed", True)
    assert claim_one(limited)
    _made, _opened, line = limited.transitions("limit", "shop")
    found = (line.from_state, line.to_state, line.trigger, line.actor, line.reason)
    assert found == ("open", "closed", "reset", "ana", "they are back")


def test_a_reset_fills_the_bucket(store: Store) -> None:
    store.limit_put(NewLimit(key="shop", rate=1, burst=2, tasks=("mail.send",)))
    for _ in range(4):
        enqueue(store)
    claim(store)
    assert store.limit_reset("shop", "ana") == Moved("shop", "closed", False)
    assert len(claim(store)) == 2
    assert [line.trigger for line in store.transitions("limit", "shop")] == ["create"]


def test_a_limit_that_is_not_there(store: Store, untouched: Untouched) -> None:
    with untouched():
        refused(store.limit_reset("nobody", "ana"), NotFound, entity_id="nobody")
