"""ops_cancel: a person stops a run."""

from __future__ import annotations

import pytest

from detent.errors import InvalidTransition, LeaseLost, NotFound
from detent.model.records import Cancelled, Moved
from detent.store.contract import Store
from tests.contract.ops.sample_ops_runs import ops_run, run_in
from tests.contract.refusals import Untouched, refused


@pytest.mark.parametrize("found", ["queued", "claimed", "running"])
def test_it_stops_at_once(store: Store, untouched: Untouched, found: str) -> None:
    """J8: who and why are on record, its holder is powerless from then on, and once more changes nothing."""
    held = run_in(store, found)
    assert store.ops_cancel(held.job_id, "bob", "wrong branch") == Moved(f"run-{held.job_id}", "cancelled", True)
    row = ops_run(store, held.job_id)
    assert (row.state, row.cancelled_by, row.cancel_reason) == ("cancelled", "bob", "wrong branch")
    with untouched():
        assert store.ops_cancel(held.job_id, "eve") == Moved(f"run-{held.job_id}", "cancelled", False)
        refused(store.ops_append(held.job_id, "info", "hello"), LeaseLost)


@pytest.mark.parametrize("found", ["claimed", "running"])
def test_a_cancel_of_its_job_is_a_cancel_of_the_run(store: Store, untouched: Untouched, found: str) -> None:
    """J8, O2: its holder, who asks nobody for renewals, is refused with whatever it says next."""
    held = run_in(store, found)
    assert store.job_cancel([held.job_id], "bob", "enough") == [Cancelled(held.job_id, "cancelled")]
    row = ops_run(store, held.job_id)
    assert (row.state, row.cancelled_by, row.cancel_reason) == ("cancelled", "bob", "enough")
    assert (row.outcome, row.claimed_by) == ("cancelled", "ana")
    with untouched():
        refused(store.ops_append(held.job_id, "info", "hello", token=held.token), LeaseLost)
        refused(store.ops_renew(held.job_id, held.token), LeaseLost)
        for end in ("success", "failed"):
            answer = store.ops_finish(held.job_id, end, "{}", "ana", token=held.token)
            refused(answer, InvalidTransition, from_state="cancelled", to_state=end)
        assert store.job_cancel([held.job_id], "eve") == [Cancelled(held.job_id, "cancelled")]
    assert store.verify() == []


@pytest.mark.parametrize("found", ["success", "failed"])
def test_what_has_ended_stays(store: Store, untouched: Untouched, found: str) -> None:
    """O2"""
    held = run_in(store, found)
    with untouched():
        refused(store.ops_cancel(held.job_id, "bob"), InvalidTransition, from_state=found, to_state="cancelled")


def test_what_is_no_run_is_not_found(store: Store) -> None:
    refused(store.ops_cancel(999_999, "bob"), NotFound, entity="ops_run", entity_id="run-999999")
