"""workflow_get: a workflow as it is now."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import enqueue
from tests.contract.workflows.sample_workflows import begin, park, record, signal


def test_in_the_order_asked_for(store: Store) -> None:
    plain = enqueue(store, task="mail.other")
    held = begin(store)
    record(store, held, version=2)
    record(store, held, "b")
    none, one, again = store.workflow_get([plain, held.job_id, held.job_id])
    assert none is None
    assert one == again
    assert one is not None
    assert (one.job_id, one.version, one.generation, one.root_id, one.parent_id) == (
        held.job_id,
        2,
        1,
        held.job_id,
        None,
    )
    assert (one.depth, one.forked_from, one.steps, one.parks) == (0, None, 2, 0)
    assert (one.parked_at, one.parked_for, one.due_at, one.undoing_since) == (None, None, None, None)


def test_a_parked_one_says_for_what(store: Store) -> None:
    held = begin(store)
    park(store, held, signal(), parked_for="signal go")
    (row,) = store.workflow_get([held.job_id])
    assert row is not None
    assert row.parked_for == "signal go"


def test_none(store: Store) -> None:
    assert store.workflow_get([]) == []
