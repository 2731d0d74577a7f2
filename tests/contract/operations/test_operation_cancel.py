"""operation_cancel: stop it where it is."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.records import Moved
from detent.store.contract import Store
from detent.store.jobs.filters import JobFilter
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import enqueue
from tests.contract.operations.sample_operations import finished, operation
from tests.contract.refusals import Untouched, refused


def test_half_way_it_stays_half_way(store: Store, clock: StoreClock) -> None:
    """J14: what is done stays done, and nothing more is."""
    for _ in range(10):
        enqueue(store)
    row = store.operation_start(operation(store, "cancel"))
    store.operation_step(row.id, 5)
    clock.advance(1)
    assert store.operation_cancel(row.id, "bob", "wrong filter") == Moved(str(row.id), "cancelled", True)
    ended = finished(store, row.id)
    assert (ended.state, ended.changed, ended.finished_at) == ("cancelled", 5, clock.now())
    assert store.job_count(JobFilter(state="cancelled")) == 5
    line = store.transitions("operation", str(row.id))[-1]
    assert (line.from_state, line.to_state, line.trigger) == ("running", "cancelled", "cancel")
    assert (line.actor, line.reason) == ("bob", "wrong filter")


def test_one_that_has_ended_stays_as_it_is(store: Store, untouched: Untouched) -> None:
    """L3"""
    row = finished(store, store.operation_start(operation(store)).id)
    with untouched():
        assert store.operation_cancel(row.id, "bob") == Moved(str(row.id), "done", False)
        refused(store.operation_cancel(999, "bob"), NotFound, entity="operation", entity_id="999")
