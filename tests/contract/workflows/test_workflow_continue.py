"""workflow_continue: the next generation of the same job, with new arguments, an empty history and the same mailbox."""

from __future__ import annotations

from detent.errors import LeaseLost
from detent.model.workflow_records import Parked
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim_one, job, state
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, load, look, paths, record, send, signal


def test_history_is_empty_and_the_mailbox_stays(store: Store, clock: StoreClock) -> None:
    """F14."""
    held = begin(store)
    record(store, held, version=2)
    send(store, held.job_id, payload="7")
    assert store.workflow_continue(held.job_id, 1, '{"to":8}', "ana") == Parked(held.job_id, 1)
    row = job(store, held.job_id)
    assert (row.state, row.due_at, row.payload, row.spared) == ("pending", clock.now(), '{"to":7}', 1)
    (execution,) = store.job_executions(held.job_id)
    assert (execution.outcome, execution.counted) == ("parked", False)
    held = claim_one(store)
    history = load(store, held)
    assert (history.version, history.generation, history.steps, history.payload) == (2, 2, [], '{"to":8}')
    assert record(store, held, generation=2).created
    assert look(store, held, signal(), outcome=None).value == "7"
    assert [row.path for row in store.step_list(held.job_id, generation=1).rows] == ["a"]
    assert [row.generation for row in store.step_list(held.job_id).rows] == [2]


def test_steps_of_a_generation_that_is_over_are_refused(store: Store, untouched: Untouched) -> None:
    held = begin(store)
    record(store, held)
    store.workflow_continue(held.job_id, 1, "{}", "ana")
    held = claim_one(store)
    with untouched():
        refused(record(store, held, "b"), LeaseLost)


def test_nothing_was_recorded_yet(store: Store) -> None:
    """The version is that of the first record, in whatever generation."""
    held = begin(store)
    store.workflow_continue(held.job_id, 1, "{}", "ana")
    held = claim_one(store)
    assert (load(store, held).version, load(store, held).generation) == (None, 2)
    record(store, held, generation=2, version=5)
    assert load(store, held).version == 5
    assert paths(load(store, held)) == ["a"]


def test_generations_without_a_record_are_counted_as_parks(store: Store) -> None:
    held = begin(store)
    for n in range(1, 4):
        store.workflow_continue(held.job_id, held.attempt, "{}", "ana")
        held = claim_one(store)
        assert (load(store, held).generation, load(store, held).parks) == (n + 1, n)


def test_a_requested_cancel_takes_effect_instead(store: Store) -> None:
    held = begin(store)
    store.job_cancel([held.job_id], "bob")
    assert store.workflow_continue(held.job_id, 1, "{}", "ana") == Parked(held.job_id, 1)
    assert state(store, held.job_id) == "cancelled"


def test_only_the_holder(store: Store, untouched: Untouched) -> None:
    held = begin(store)
    abort(store, held)
    with untouched():
        refused(store.workflow_continue(held.job_id, 1, "{}", "ana"), LeaseLost)
