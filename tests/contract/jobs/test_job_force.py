"""job_force: an operator's override, along declared lines only, and marked."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.errors import InvalidTransition, NotFound
from detent.lifecycle.library import JOB
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import brought_to, claim, claim_one, commit, enqueue, job
from tests.contract.refusals import Untouched, refused

FORCED = [(t.source, t.target) for t in JOB.transitions if t.trigger == "force"]


@pytest.mark.parametrize("found", dict.fromkeys(source for source, _ in FORCED))
def test_along_declared_lines(store: Store, clock: StoreClock, found: str) -> None:
    """E4: the move is made, and marked as an operator's with name and reason."""
    for target in (target for source, target in FORCED if source == found):
        job_id = brought_to(store, found)
        clock.advance(3)
        assert store.job_force(job_id, target, "ana", "seen to") == Moved(str(job_id), target, True)
        row = job(store, job_id)
        assert (row.state, row.finished_at) == (target, clock.now())
        last = store.transitions("job", str(job_id))[-1]
        assert (last.from_state, last.to_state, last.trigger, last.forced) == (found, target, "force", True)
        assert (last.actor, last.reason, last.at) == ("ana", "seen to", clock.now())
    assert claim(store) == []


@pytest.mark.parametrize("found", JOB.states)
def test_along_no_other(store: Store, clock: StoreClock, untouched: Untouched, found: str) -> None:
    """L2, L3: every pair of states that is not declared as force is refused; the same state is nothing to do."""
    job_id = brought_to(store, found)
    clock.advance(3)
    with untouched():
        assert store.job_force(job_id, found, "ana", "seen to") == Moved(str(job_id), found, False)
        for target in (target for target in JOB.states if target != found and (found, target) not in FORCED):
            refused(
                store.job_force(job_id, target, "ana", "seen to"),
                InvalidTransition,
                entity_id=str(job_id),
                from_state=found,
                to_state=target,
                allowed=JOB.allowed(found),
            )


def test_forced_to_succeeded_is_committed_by_hand(store: Store, clock: StoreClock) -> None:
    """E4: the effect has happened; from now on nothing repeats it."""
    job_id = brought_to(store, "quarantined")
    clock.advance(3)
    store.job_force(job_id, "succeeded", "ana", "the bank says it is paid")
    row = job(store, job_id)
    assert (row.committed_at, row.finished_at) == (clock.now(), clock.now())
    refused(store.job_retry([job_id], "ana")[0], InvalidTransition, from_state="succeeded")


def test_set_aside_before_it_runs(store: Store, clock: StoreClock) -> None:
    """E4: forced out of pending it is claimed no more, due or not; a retry brings it back."""
    ready = enqueue(store)
    waiting = enqueue(store, due_at=clock.now() + timedelta(seconds=5))
    for job_id in (ready, waiting):
        store.job_force(job_id, "quarantined", "ana", "looks wrong")
    clock.advance(10)
    assert store.job_promote(10) == 0
    assert claim(store) == []
    store.job_retry([ready, waiting], "ana")
    assert {held.job_id for held in claim(store)} == {ready, waiting}


def test_no_such_job(store: Store, untouched: Untouched) -> None:
    with untouched():
        refused(store.job_force(10**12, "succeeded", "ana", "r"), NotFound, entity="job", entity_id=str(10**12))


def test_a_committed_job_is_not_forced_away(store: Store, untouched: Untouched) -> None:
    job_id = enqueue(store)
    store.job_commit(commit(claim_one(store)))
    with untouched():
        refused(store.job_force(job_id, "quarantined", "ana", "r"), InvalidTransition, from_state="running")
