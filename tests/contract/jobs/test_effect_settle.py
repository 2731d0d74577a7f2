"""effect_settle: what a person found out about an effect that nobody knew of."""

from __future__ import annotations

import pytest

from detent.errors import InvalidTransition, NotFound, NotUnknown
from detent.lifecycle.library import JOB
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, brought_to, claim_one, enqueue, job, quarantined
from tests.contract.refusals import Untouched, refused


def unknown(store: Store) -> int:
    """A job of which nobody knows whether its effect has happened."""
    job_id = enqueue(store, idempotent=False)
    held = claim_one(store)
    store.job_start([(job_id, held.attempt)])
    abort(store, held, "crashed", error="gone")
    assert job(store, job_id).state == "quarantined"
    return job_id


def test_it_has_happened(store: Store, clock: StoreClock) -> None:
    """C5: succeeded with the result that was found, on record with who and why; never run again."""
    job_id = unknown(store)
    clock.advance(3)
    assert store.effect_settle(job_id, True, "ana", "the bank says so", '"paid"') == Moved(
        str(job_id), "succeeded", True
    )
    row = job(store, job_id)
    assert (row.state, row.result, row.error) == ("succeeded", '"paid"', None)
    assert (row.committed_at, row.finished_at) == (clock.now(), clock.now())
    last = store.transitions("job", str(job_id))[-1]
    assert (last.from_state, last.to_state, last.trigger) == ("quarantined", "succeeded", "settle")
    assert (last.actor, last.reason, last.forced, last.at) == ("ana", "the bank says so", False, clock.now())
    refused(store.job_retry([job_id], "ana")[0], InvalidTransition, from_state="succeeded")
    assert store.verify() == []


def test_it_has_not(store: Store, clock: StoreClock) -> None:
    """C5: pending at once with all its attempts, on record with who and why."""
    job_id = unknown(store)
    clock.advance(3)
    assert store.effect_settle(job_id, False, "ana", "nothing came") == Moved(str(job_id), "pending", True)
    row = job(store, job_id)
    assert (row.state, row.due_at, row.error, row.spared) == ("pending", clock.now(), None, 1)
    last = store.transitions("job", str(job_id))[-1]
    assert (last.trigger, last.actor, last.reason) == ("settle", "ana", "nothing came")
    assert store.verify() == []
    assert claim_one(store).attempt == 2


@pytest.mark.parametrize("done", [True, False])
def test_settled_already_is_nothing_to_do(store: Store, untouched: Untouched, done: bool) -> None:
    """L3."""
    job_id = unknown(store)
    store.effect_settle(job_id, done, "ana", "seen")
    with untouched():
        answer = store.effect_settle(job_id, done, "bo", "seen too")
    assert answer == Moved(str(job_id), "succeeded" if done else "pending", False)


@pytest.mark.parametrize("found", JOB.states)
@pytest.mark.parametrize("done", [True, False])
def test_what_is_known_is_not_settled(store: Store, untouched: Untouched, found: str, done: bool) -> None:
    """L2: only what is quarantined as unknown."""
    job_id = brought_to(store, found)
    target = "succeeded" if done else "pending"
    with untouched():
        answer = store.effect_settle(job_id, done, "ana", "seen")
    match found:
        case "quarantined":
            assert "'fatal', not as unknown" in str(refused(answer, NotUnknown, job_id=job_id, reason="fatal"))
        case _ if found == target:
            assert answer == Moved(str(job_id), target, False)
        case _:
            refused(answer, InvalidTransition, from_state=found, to_state=target)


def test_no_such_job(store: Store, untouched: Untouched) -> None:
    with untouched():
        refused(store.effect_settle(10**12, True, "ana", "r"), NotFound, entity_id=str(10**12))


def test_a_neighbour_is_left_alone(store: Store) -> None:
    other = quarantined(store)
    store.effect_settle(unknown(store), True, "ana", "seen")
    assert job(store, other).state == "quarantined"
