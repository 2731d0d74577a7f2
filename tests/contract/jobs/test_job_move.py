"""job_move: pending jobs in another queue, or with another priority."""

from __future__ import annotations

from datetime import timedelta

from detent.errors import InvalidTransition, NotFound
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, job, succeeded
from tests.contract.refusals import Untouched, refused


def test_it_is_claimed_from_where_it_went(store: Store, clock: StoreClock) -> None:
    """J14: from its new queue, in the order of its new priority; its due time stays."""
    ids = [enqueue(store, queue="mail") for _ in range(3)]
    assert store.job_move([ids[2]], "bulk", 5, "ana", "too many") == [Moved(str(ids[2]), "pending", True)]
    assert store.job_move([ids[1]], "bulk", None, "ana") == [Moved(str(ids[1]), "pending", True)]
    assert [held.job_id for held in claim(store, queues=["mail"])] == [ids[0]]
    assert [held.job_id for held in claim(store, queues=["bulk"])] == [ids[2], ids[1]]
    assert (job(store, ids[2]).queue, job(store, ids[2]).priority, job(store, ids[1]).priority) == ("bulk", 5, 0)


def test_what_waits_for_its_time_waits_there(store: Store, clock: StoreClock) -> None:
    job_id = enqueue(store, due_at=clock.now() + timedelta(seconds=10))
    store.job_move([job_id], "bulk", 7, "ana")
    assert claim(store) == []
    clock.advance(10)
    assert store.job_promote(10) == 1
    assert claim_one(store, queues=["bulk"]).job_id == job_id


def test_it_is_recorded(store: Store, clock: StoreClock) -> None:
    """E4: who, why, when and where to; and the record still folds to what is."""
    job_id = enqueue(store)
    clock.advance(1)
    store.job_move([job_id], "bulk", None, "ana", "too many")
    line = store.transitions("job", str(job_id))[-1]
    assert (line.from_state, line.to_state, line.trigger, line.at) == ("pending", "pending", "move", clock.now())
    assert (line.actor, line.reason, line.metadata) == ("ana", "too many", '{"queue":"bulk"}')
    assert store.repair("ana", "look") == []


def test_a_job_that_came_back_may_move_too(store: Store, clock: StoreClock) -> None:
    """J1: what brought it back still says when it is due."""
    job_id = enqueue(store)
    abort(store, claim_one(store), delay=5)
    store.job_move([job_id], "bulk", None, "ana")
    clock.advance(5)
    store.job_promote(10)
    assert store.verify() == []
    assert store.repair("ana", "look") == []
    assert claim_one(store, queues=["bulk"]).attempt == 2


def test_a_key_until_the_first_claim_goes_with_it(store: Store) -> None:
    """J12"""
    job_id = enqueue(store, key="k", unique_pending=True)
    store.job_move([job_id], "bulk", None, "ana")
    claim_one(store)
    assert enqueue(store, key="k", unique_pending=True) != job_id


def test_there_already_is_nothing_to_do(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3"""
    job_id = enqueue(store, queue="mail", priority=3)
    with untouched():
        assert store.job_move([job_id], "mail", 3, "ana") == [Moved(str(job_id), "pending", False)]
        assert store.job_move([job_id], None, None, "ana") == [Moved(str(job_id), "pending", False)]


def test_only_pending_jobs_move(store: Store, untouched: Untouched) -> None:
    """L2"""
    done = succeeded(store)
    running = enqueue(store)
    claim_one(store)
    with untouched():
        answers = store.job_move([done, 999, running], "bulk", None, "ana")
    refused(answers[0], InvalidTransition, from_state="succeeded", to_state="pending")
    refused(answers[1], NotFound, entity="job", entity_id="999")
    refused(answers[2], InvalidTransition, from_state="running")
