"""ops_renew: a sign of life without a line."""

from __future__ import annotations

import pytest

from detent.errors import LeaseLost, NotFound
from detent.model.ops_records import OpsToken
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.ops.sample_ops_runs import ops_run, run_in
from tests.contract.refusals import Untouched, refused


@pytest.mark.parametrize("found", ["claimed", "running"])
def test_a_silent_run_whose_holder_lives_is_kept(store: Store, clock: StoreClock, found: str) -> None:
    """O4: for hours, in the state that it has, and without a line among its events."""
    held = run_in(store, found)
    lines = len(store.job_events(held.job_id))
    for _ in range(10):
        clock.advance(299)
        assert store.ops_renew(held.job_id, held.token) == Moved(f"run-{held.job_id}", found, False)
        assert store.lease_reap(100).leases == 0
    assert len(store.job_events(held.job_id)) == lines
    clock.advance(600)
    store.lease_reap(100)
    assert ops_run(store, held.job_id).state == ("cancelled" if found == "claimed" else "failed")


def test_only_by_its_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J5, C4: another claim's token, a lease that has run out, and a run that nobody holds."""
    held, queued = run_in(store, "running"), run_in(store, "queued")
    with untouched():
        refused(store.ops_renew(held.job_id, OpsToken(2, held.token.lease_id)), LeaseLost, found="another claim has it")
        refused(store.ops_renew(held.job_id, OpsToken(1, 999_999)), LeaseLost, found="another claim has it")
        refused(store.ops_renew(queued.job_id), LeaseLost)
    clock.advance(600)
    with untouched():
        refused(store.ops_renew(held.job_id, held.token), LeaseLost, found="its lease has expired")
        refused(store.ops_renew(held.job_id), LeaseLost, found="its lease has expired")


def test_what_is_no_run_is_not_found(store: Store) -> None:
    refused(store.ops_renew(999_999), NotFound, entity="ops_run", entity_id="run-999999")
