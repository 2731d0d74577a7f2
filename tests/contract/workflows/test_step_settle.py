"""step_settle: a person says what became of a step, or of its undo, and the workflow goes on."""

from __future__ import annotations

import pytest

from detent.errors import InvalidInput, InvalidTransition, NotFound, NotUnknown
from detent.model.records import Claimed, Moved
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim_one, enqueue, state
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, load, paths, record, step
from tests.contract.workflows.test_undo_start import ended, started, two_steps, undo


def unknown(store: Store, *names: str) -> Claimed:
    """A workflow that is quarantined because nobody knows whether these steps were done."""
    held = begin(store)
    record(store, held, "a")
    store.step_begin([step(held, name, seq=9, undo=True, secret=True) for name in names])
    abort(store, held, outcome="unknown", error="it is unknown", fatal=True)
    assert state(store, held.job_id) == "quarantined"
    return held


def test_a_step_that_was_done_is_on_record_with_its_value(store: Store) -> None:
    held = unknown(store, "s/charge")
    answer = store.step_settle(held.job_id, "s/charge", True, "ana", "seen at the bank", '"p-7"')
    assert answer == Moved(str(held.job_id), "pending", True)
    history = load(store, claim_one(store))
    assert paths(history) == ["a", "s/charge"]
    assert history.begun == ()
    found = history.steps[1]
    assert (found.value, found.kind, found.scope, found.attempt) == ('"p-7"', "call", "s", 0)
    assert (found.undo, found.secret, found.beside, found.seq) == (True, True, True, 2)


def test_a_step_that_was_not_done_is_not_on_record(store: Store) -> None:
    held = unknown(store, "charge")
    store.step_settle(held.job_id, "charge", False, "ana", "not at the bank")
    again = claim_one(store)
    history = load(store, again)
    assert paths(history) == ["a"]
    assert [one.path for one in history.begun] == ["charge"]
    assert again.spared == 1
    *_, line = store.transitions("job", str(held.job_id))[:-1]
    assert (line.trigger, line.actor, line.reason) == ("settle", "ana", "not at the bank")
    assert line.metadata is not None
    assert '"charge"' in line.metadata


def test_one_of_two_steps(store: Store) -> None:
    held = unknown(store, "charge", "mail")
    error = refused(store.step_settle(held.job_id, "ship", True, "ana", "why"), InvalidInput)
    assert error.allowed == "'charge' or 'mail'"
    store.step_settle(held.job_id, "mail", True, "ana", "why")
    history = load(store, claim_one(store))
    assert paths(history) == ["a", "mail"]
    assert [one.path for one in history.begun] == ["charge"]


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_an_undo_that_has_failed(store: Store, done: bool, other: bool) -> None:
    """F20: quarantined with the reason `undo failed`; of the workflow itself, and of another job."""
    if other:
        started(undo(store, ended(store)))
        held = claim_one(store)
    else:
        held = two_steps(store, dead_letter=False)
        store.undo_begin(held.job_id, 1, "no parcel")
    abort(store, held, error="the bank is closed", fatal=True)
    assert state(store, held.job_id) == "quarantined"
    (group,) = store.dead_report(None, None, None, 10)
    assert group.reason == "undo failed"
    refused(store.effect_settle(held.job_id, True, "ana", "why"), NotUnknown)
    error = refused(store.step_settle(held.job_id, "reserve", done, "ana", "why"), InvalidInput)
    assert error.allowed == "'charge'"  # the one that was to be undone next
    store.step_settle(held.job_id, "charge", done, "ana", "paid back in cash")
    history = load(store, claim_one(store))
    assert ("charge~undo" in paths(history)) == done
    assert history.undoing
    if done:
        (found,) = (one for one in history.steps if one.path == "charge~undo")
        assert (found.kind, found.value, found.seq, found.attempt) == ("undo", "null", 5, 0)


def test_a_cancel_does_not_end_an_undo(store: Store) -> None:
    """A workflow that was cancelled undoes its steps to the end, whatever happens to its worker."""
    held = two_steps(store)
    store.job_cancel([held.job_id], "ana", "sold out")
    store.undo_begin(held.job_id, 1, "cancelled")
    assert abort(store, held, outcome="released").state == "pending"
    held = claim_one(store)
    assert abort(store, held, outcome="cancelled").state == "pending"
    held = claim_one(store)
    assert abort(store, held, outcome="error", fatal=True).state == "quarantined"
    store.job_retry([held.job_id], "ana")
    held = claim_one(store)
    store.job_cancel([held.job_id], "ana", "sold out")
    record(store, held, "~undone", seq=9, kind="undo", value="null")
    assert abort(store, held, outcome="cancelled").state == "cancelled"


def test_what_cannot_be_settled(store: Store, untouched: Untouched) -> None:
    running = two_steps(store)
    dead = begin(store)
    record(store, dead)
    abort(store, dead, fatal=True)
    plain = enqueue(store)
    abort(store, claim_one(store), outcome="unknown", fatal=True)
    with untouched():
        refused(store.step_settle(10**9, "a", True, "ana", "why"), NotFound)
        refused(store.step_settle(running.job_id, "a", True, "ana", "why"), InvalidTransition)
        refused(store.step_settle(dead.job_id, "a", True, "ana", "why"), NotUnknown, reason="fatal")
        refused(store.step_settle(plain, "a", True, "ana", "why"), NotUnknown, reason="unknown")
