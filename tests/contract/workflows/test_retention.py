"""Retention of workflows: what is on record about a workflow goes with its job, and no child goes before its parent has
come to rest for good."""

from __future__ import annotations

from datetime import timedelta

from detent.model.copy_records import Rewind, Rewound
from detent.model.records import Claimed
from detent.store.contract import Store
from detent.testing.stores import StoreClock, dump
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, finish
from tests.contract.workflows.sample_workflows import begin, children, look, park, record, send, signal, spawn, step

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


def test_children_go_when_their_parent_has_continued_as_new(store: Store, clock: StoreClock) -> None:
    """F14: a workflow that loops for ever does not keep the children of all its rounds: nothing asks for them."""
    held = grown(store)
    old = store.child_list(held.job_id)
    store.workflow_continue(held.job_id, held.attempt, "{}", "ana")
    held = claim_one(store)
    spawn(store, held, 2, step=step(held, "kids", kind="spawn", generation=2))
    for child in claim(store, tasks=["mail.child"]):
        finish(store, child)
    new = [one for one in store.child_list(held.job_id) if one not in old]
    clock.advance(timedelta(days=30))
    store.lease_reap(10)
    before = clock.now() - timedelta(days=1)
    assert len(new) == 2
    assert sorted(store.job_prunable(before, None, 100).ids) == sorted(old)
    assert store.job_drop([*old, *new], before, "ana") == 2
    assert [row is None for row in store.job_get([*old, *new])] == [True, True, False, False]


def test_children_stay_while_copies_of_their_steps_may_ask_for_them(store: Store, clock: StoreClock) -> None:
    """F17: a rewind begins another generation, whose copied steps read the children of the one before."""
    held = grown(store)
    look(store, held, children(), path="kids~join", outcome=step(held, "kids~join", kind="join", seq=9, value=None))
    record(store, held, "last", seq=10)
    abort(store, held, fatal=True)
    rewound = store.workflow_rewind(
        Rewind(job_id=held.job_id, to="last", actor="ana", reason="wrong", seed="s", force=True)
    )
    assert isinstance(rewound, Rewound), rewound
    assert prune(store, clock) == 0
    assert len(store.child_list(held.job_id)) == 2


def test_a_detached_child_goes_while_its_parent_runs(store: Store, clock: StoreClock) -> None:
    """F14: its parent cannot ask for it."""
    held = begin(store)
    spawn(store, held, 1, detached=True)
    finish(store, claim_one(store, tasks=["mail.child"]))
    park(store, held, signal("none"))
    assert prune(store, clock) == 1
