"""tree_cancel_count: how much of the cancel of a tree is left."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim
from tests.contract.workflows.sample_workflows import begin, spawn


def test_jobs_whose_children_are_left(store: Store) -> None:
    root = begin(store)
    spawn(store, root, 3)
    for held in claim(store, tasks=("mail.child",), limit=3):
        spawn(store, held, 1)
    assert store.tree_cancel_count(root.job_id) == 0
    store.job_cancel([root.job_id], "bob")
    assert store.tree_cancel_count(root.job_id) == 1
    store.tree_cancel_step(3)
    # Whether the last portion was the last is seen by the next one.
    assert store.tree_cancel_count(root.job_id) == 4
    assert store.tree_cancel_count(root.job_id, 2) == 2
    assert store.tree_cancel_count(root.job_id + 1) == 0
    while store.tree_cancel_step(3):
        pass
    assert store.tree_cancel_count(root.job_id) == 0
