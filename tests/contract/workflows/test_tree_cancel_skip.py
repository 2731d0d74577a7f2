"""tree_cancel_skip: a child that makes every step fail is passed over."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import state
from tests.contract.refusals import Untouched
from tests.contract.workflows.sample_workflows import begin, is_spawned, spawn


def test_the_next_child_is_skipped(store: Store, untouched: Untouched) -> None:
    with untouched():
        assert store.tree_cancel_skip() is None
    held = begin(store)
    first = is_spawned(spawn(store, held, 3)).first_id
    store.job_cancel([held.job_id], "bob")
    assert store.tree_cancel_step(1) == 1
    assert store.tree_cancel_skip() == first + 1
    assert store.tree_cancel_step(2) == 1
    assert [state(store, first + n) for n in range(3)] == ["cancelled", "pending", "cancelled"]
    assert store.tree_cancel_skip() is None
