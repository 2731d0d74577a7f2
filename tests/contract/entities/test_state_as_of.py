"""state_as_of: the state at a past moment, folded from the record."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim_one, enqueue, finish
from tests.contract.refusals import Untouched

A_LITTLE = timedelta(microseconds=1)


def test_every_moment_of_a_jobs_life(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """E5: each state from its own moment until the next; none before the beginning."""
    life = []
    job_id = enqueue(store)
    life.append((clock.now(), "pending"))
    clock.advance(1)
    held = claim_one(store)
    life.append((clock.now(), "running"))
    clock.advance(1)
    abort(store, held, error="e", fatal=True)
    life.append((clock.now(), "quarantined"))
    clock.advance(1)
    store.job_retry([job_id], "ana")
    life.append((clock.now(), "pending"))
    clock.advance(1)
    claim_one(store)
    life.append((clock.now(), "running"))
    clock.advance(LEASE)
    store.lease_reap(10)
    life.append((clock.now(), "pending"))
    clock.advance(1)
    finish(store, claim_one(store))
    life.append((clock.now(), "succeeded"))
    with untouched():
        assert store.state_as_of("job", str(job_id), life[0][0] - A_LITTLE) is None
        for (moment, state), (following, _) in pairwise(life):
            assert store.state_as_of("job", str(job_id), moment) == state
            assert store.state_as_of("job", str(job_id), following - A_LITTLE) == state
        assert store.state_as_of("job", str(job_id), clock.now() + timedelta(days=1)) == "succeeded"


def test_a_queue_has_a_past_too(store: Store, clock: StoreClock) -> None:
    """E5"""
    start = clock.now()
    clock.advance(1)
    store.queue_pause("mail", "ana")
    paused = clock.now()
    clock.advance(1)
    store.queue_resume("mail", "ana")
    assert store.state_as_of("queue", "mail", start) is None
    assert store.state_as_of("queue", "mail", paused) == "paused"
    assert store.state_as_of("queue", "mail", clock.now()) == "open"


def test_what_never_was_has_no_past(store: Store, clock: StoreClock) -> None:
    assert store.state_as_of("job", "999999999", clock.now()) is None
