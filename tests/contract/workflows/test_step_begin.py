"""step_begin: that a step is about to be called is on record before the call, once for each attempt."""

from __future__ import annotations

from detent.errors import LeaseLost
from detent.model.workflow_records import StepBegun
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, load, record, step


def test_the_first_attempt_and_how_many_there_were(store: Store) -> None:
    """F1: the next attempt learns that the step may have happened."""
    held = begin(store)
    assert store.step_begin([step(held)]) == [StepBegun("a", 1, 1)]
    abort(store, held)
    held = claim_one(store)
    assert load(store, held).begun == (StepBegun("a", 1, 1),)
    assert store.step_begin([step(held)]) == [StepBegun("a", 1, 2)]
    assert load(store, held).begun == (StepBegun("a", 1, 2),)


def test_a_recorded_step_is_no_longer_begun(store: Store) -> None:
    held = begin(store)
    store.step_begin([step(held), step(held, "b")])
    record(store, held)
    assert load(store, held).begun == (StepBegun("b", 1, 1),)


def test_twice_in_one_attempt_is_once(store: Store) -> None:
    held = begin(store)
    assert store.step_begin([step(held), step(held)]) == [StepBegun("a", 1, 1)] * 2
    assert store.step_begin([step(held)]) == [StepBegun("a", 1, 1)]


def test_it_begins_the_workflow(store: Store) -> None:
    held = begin(store)
    store.step_begin([step(held, version=2)])
    (row,) = store.workflow_get([held.job_id])
    assert row is not None
    assert (row.version, row.steps) == (2, 0)


def test_only_the_holder(store: Store, untouched: Untouched) -> None:
    enqueue(store)
    enqueue(store)
    one, two = claim(store)
    abort(store, one)
    with untouched():
        refused(store.step_begin([step(one)])[0], LeaseLost, job_id=one.job_id)
    lost, kept = store.step_begin([step(one), step(two)])
    refused(lost, LeaseLost)
    assert kept == StepBegun("a", 1, 1)


def test_a_begun_step_is_no_progress(store: Store) -> None:
    enqueue(store, attempts_max=2)
    for expected in ("pending", "quarantined"):
        held = claim_one(store)
        store.step_begin([step(held)])
        assert abort(store, held).state == expected
