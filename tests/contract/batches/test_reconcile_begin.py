"""reconcile_begin: one look at a time."""

from __future__ import annotations

from detent.errors import IdConflict, InvalidTransition, NotFound, RunBusy, TransitionRace
from detent.model.batch_records import ReconciliationRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import LOOK, NUMBERS, act, applied_run, previewed_run
from tests.contract.jobs.sample_jobs import abort, claim, enqueue, job, new_job
from tests.contract.refusals import Untouched, refused


def test_a_look_by_hand_at_any_time(store: Store, clock: StoreClock) -> None:
    """B6: the plan stays as it is."""
    made = applied_run(store)
    item = new_job(store, task=LOOK, run_id=made.id)
    look = store.reconcile_begin(made.id, None, item, "ana")
    assert isinstance(look, ReconciliationRow)
    assert (look.no, look.planned, look.actor, look.job_id) == (1, None, "ana", item.id)
    assert (look.cursor, look.checked, look.done_at, look.created_at) == (0, 0, None, clock.now())
    row = store.batch_get(made.id)
    assert row is not None
    assert row.reconcile_no == 0
    assert job(store, item.id).run_id == made.id


def test_while_one_is_under_way_it_is_that_one(store: Store, untouched: Untouched) -> None:
    made = applied_run(store)
    first = store.reconcile_begin(made.id, None, new_job(store, task=LOOK, run_id=made.id), "ana")
    other = new_job(store, task=LOOK, run_id=made.id)
    with untouched():
        assert store.reconcile_begin(made.id, None, other, "ben") == first


def test_one_whose_job_gave_up_is_over(store: Store) -> None:
    made = applied_run(store)
    store.reconcile_begin(made.id, None, new_job(store, task=LOOK, run_id=made.id), "ana")
    abort(store, claim(store, tasks=[LOOK])[0], fatal=True)
    row = store.batch_get(made.id)
    assert row is not None
    assert row.stuck == 0
    look = store.reconcile_begin(made.id, None, new_job(store, task=LOOK, run_id=made.id), "ana")
    assert isinstance(look, ReconciliationRow)
    assert look.no == 2
    assert [one.done_at is None for one in store.reconciliation_list(made.id)] == [True, False]


def test_a_planned_look_once(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """B6: whoever comes second was too late; too early is too early."""
    made = applied_run(store)
    item = new_job(store, task=LOOK, run_id=made.id)
    with untouched():
        refused(store.reconcile_begin(made.id, 0, item, "system"), TransitionRace)
    clock.advance(301)
    store.reconcile_begin(made.id, 0, item, "system")
    with untouched():
        again = new_job(store, id=next(NUMBERS), task=LOOK, run_id=made.id)
        refused(store.reconcile_begin(made.id, 0, again, "system"), TransitionRace)


def test_there_must_be_something_to_look_at(store: Store, untouched: Untouched) -> None:
    waiting = previewed_run(store)
    undone = applied_run(store)
    done = applied_run(store)
    act(store, undone.id, "roll_back")
    item = new_job(store, task=LOOK)
    taken = new_job(store, id=enqueue(store), payload="{}")
    with untouched():
        refused(store.reconcile_begin(waiting.id, None, item, "ana"), InvalidTransition, from_state="preview")
        refused(store.reconcile_begin(undone.id, None, item, "ana"), RunBusy)
        refused(store.reconcile_begin(99, None, item, "ana"), NotFound)
        refused(store.reconcile_begin(done.id, None, taken, "ana"), IdConflict)
