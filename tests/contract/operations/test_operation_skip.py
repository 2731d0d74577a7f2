"""operation_skip: a job that makes every step fail is passed over."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.service_records import OperationRow
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import quarantined, state
from tests.contract.operations.sample_operations import finished, operation
from tests.contract.refusals import Untouched, refused


def test_the_next_job_is_passed_over_and_counted_as_refused(store: Store) -> None:
    """J14"""
    ids = [quarantined(store) for _ in range(3)]
    row = store.operation_start(operation(store, "retry", job_state="quarantined"))
    skipped = store.operation_skip(row.id)
    assert isinstance(skipped, OperationRow)
    assert (skipped.state, skipped.looked, skipped.refused, skipped.after_id) == ("running", 1, 1, ids[0])
    done = finished(store, row.id)
    assert (done.looked, done.changed, done.refused) == (3, 2, 1)
    assert [state(store, one) for one in ids] == ["quarantined", "pending", "pending"]


def test_with_no_job_left_or_at_its_end_it_stays_as_it_is(store: Store, untouched: Untouched) -> None:
    """J14"""
    row = store.operation_start(operation(store, "retry"))
    with untouched():
        assert store.operation_skip(row.id) == store.operation_get(row.id)
    finished(store, row.id)
    with untouched():
        assert store.operation_skip(row.id) == store.operation_get(row.id)


def test_there_must_be_one(store: Store) -> None:
    refused(store.operation_skip(77), NotFound, entity="operation")
