"""Retention of workflows: what is on record about a workflow goes with its job, and no child goes before its parent has
come to rest for good."""

from __future__ import annotations

from datetime import timedelta

from detent.model.records import Claimed
from detent.store.contract import Store
from detent.testing.stores import StoreClock, dump
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, finish
from tests.contract.workflows.sample_workflows import begin, children, look, park, send, signal, spawn, step

TABLES = (
    *("workflow", "workflow_step", "workflow_step_begun", "workflow_wait", "workflow_signal", "workflow_unread"),
    "child_group",
)


def grown(store: Store) -> Claimed:
    """A workflow with a row in every table; its second attempt, which runs, and two children that have succeeded."""
    held = begin(store)
    store.step_begin([step(held, "x")])
    send(store, held.job_id)
    look(store, held, signal())
    send(store, held.job_id, "unread")
    spawn(store, held, 2)
    park(store, held, children())
    for child in claim(store, tasks=["mail.child"]):
        finish(store, child)
    return claim_one(store)


def prune(store: Store, clock: StoreClock) -> int:
    clock.advance(timedelta(days=30))
    return store.job_prune(clock.now() - timedelta(days=1), None, 100, "ana").jobs


def test_everything_goes_with_the_job(store: Store, store_url: str, clock: StoreClock) -> None:
    held = grown(store)
    finish(store, held)
    before = dump(store_url)
    assert [table for table in TABLES if not before[table]] == []
    assert prune(store, clock) == 3
    after = dump(store_url)
    assert {table: after[table] for table in TABLES} == {table: [] for table in TABLES}
    assert store.workflow_get([held.job_id]) == [None]


def test_children_stay_while_their_parent_runs(store: Store, clock: StoreClock) -> None:
    """F19: their results are read page by page while the parent lives."""
    held = grown(store)
    ids = store.child_list(held.job_id)
    clock.advance(timedelta(days=30))
    store.lease_reap(10)
    before = clock.now() - timedelta(days=1)
    assert store.job_prunable(before, None, 100).ids == ()
    assert store.job_prune(before, None, 100, "ana").jobs == 0
    assert store.job_drop(ids, before, "ana") == 0
    assert store.child_list(held.job_id) == ids


def test_children_stay_while_their_parent_may_be_retried(store: Store, clock: StoreClock) -> None:
    held = grown(store)
    abort(store, held, fatal=True)
    clock.advance(timedelta(days=30))
    store.job_prune(clock.now() - timedelta(days=1), None, 100, "ana", ["succeeded"])
    assert len(store.child_list(held.job_id)) == 2


def test_children_may_go_before_a_parent_that_has_ended(store: Store, clock: StoreClock) -> None:
    held = grown(store)
    clock.advance(timedelta(days=30))
    store.lease_reap(10)
    finish(store, claim_one(store))
    assert store.job_prune(clock.now() - timedelta(days=1), None, 100, "ana").jobs == 2
    assert store.child_list(held.job_id) == []
    assert store.child_groups(held.job_id)[0].succeeded == 2


def test_a_parked_workflow_stays(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    park(store, held, signal())
    assert prune(store, clock) == 0
    send(store, held.job_id)
    assert claim_one(store).attempt == 2
