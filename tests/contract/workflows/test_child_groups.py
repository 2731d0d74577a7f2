"""child_groups: the groups of children of the current generation."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim_one
from tests.contract.workflows.sample_workflows import begin, spawn


def test_by_path(store: Store) -> None:
    held = begin(store)
    spawn(store, held, 1, path="b")
    spawn(store, held, 2, path="a")
    assert [(row.path, row.total) for row in store.child_groups(held.job_id)] == [("a", 2), ("b", 1)]
    assert store.child_groups(held.job_id + 1000) == []


def test_those_of_earlier_generations_are_left_out(store: Store) -> None:
    held = begin(store)
    spawn(store, held, 1)
    store.workflow_continue(held.job_id, 1, "{}", "ana")
    claim_one(store)
    assert store.child_groups(held.job_id) == []
