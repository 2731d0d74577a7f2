"""operation_start: something is to be done to all jobs that fit."""

from __future__ import annotations

from detent.model.service_records import OperationRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import enqueue
from tests.contract.operations.sample_operations import operation
from tests.contract.refusals import Untouched


def test_it_stands_as_it_was_said(store: Store, clock: StoreClock) -> None:
    """J14, E4: who, why, when; and the jobs there are at that moment."""
    last = enqueue(store)
    item = operation(store, "move", reason="too many", job_state="pending", tenant="", to_queue="bulk", to_priority=-1)
    row = store.operation_start(item)
    assert row == OperationRow(
        id=item.id,
        action="move",
        state="running",
        actor="ana",
        reason="too many",
        job_state="pending",
        task=None,
        queue=None,
        tenant="",
        to_queue="bulk",
        to_priority=-1,
        until_id=last,
        after_id=0,
        looked=0,
        changed=0,
        refused=0,
        created_at=clock.now(),
        finished_at=None,
    )
    (line,) = store.transitions("operation", str(item.id))
    assert (line.from_state, line.to_state, line.trigger, line.actor) == (None, "running", "move", "ana")


def test_the_same_id_again_is_the_same_one(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """After a lost answer."""
    item = operation(store)
    row = store.operation_start(item)
    clock.advance(1)
    with untouched():
        assert store.operation_start(item) == row
