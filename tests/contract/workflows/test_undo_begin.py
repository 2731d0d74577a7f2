"""undo_begin: that the steps of a workflow are being undone is on record, and why."""

from __future__ import annotations

from detent.errors import LeaseLost
from detent.model.workflow_records import UndoBegun
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim_one
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, load, record


def test_the_first_cause_counts(store: Store) -> None:
    held = begin(store)
    record(store, held)
    assert not load(store, held).undoing
    assert store.undo_begin(held.job_id, 1, "no parcel") == UndoBegun(held.job_id, "no parcel")
    abort(store, held)
    held = claim_one(store)
    history = load(store, held)
    assert (history.undoing, history.cause) == (True, "no parcel")
    assert store.undo_begin(held.job_id, 2, "another") == UndoBegun(held.job_id, "no parcel")
    (row,) = store.workflow_get([held.job_id])
    assert row is not None
    assert row.undoing_since is not None


def test_a_new_generation_is_not_undone(store: Store) -> None:
    held = begin(store)
    record(store, held)
    store.undo_begin(held.job_id, 1, "no parcel")
    store.workflow_continue(held.job_id, 1, "{}", "ana")
    history = load(store, claim_one(store))
    assert (history.undoing, history.cause) == (False, None)


def test_whoever_cancels_may_waive_the_undo(store: Store, untouched: Untouched) -> None:
    """F20: a cancel without undo is on record, and nothing is undone."""
    held = begin(store)
    record(store, held, undo=True)
    store.job_cancel([held.job_id], "bob", "it was a test", undo=False)
    with untouched():
        assert store.undo_begin(held.job_id, 1, "cancelled") == UndoBegun(held.job_id, "cancelled", waived=True)
    assert abort(store, held, "cancelled").state == "cancelled"


def test_only_the_holder(store: Store, untouched: Untouched) -> None:
    held = begin(store)
    record(store, held)
    abort(store, held)
    with untouched():
        refused(store.undo_begin(held.job_id, 1, "no parcel"), LeaseLost, attempt=1)
