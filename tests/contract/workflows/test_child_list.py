"""child_list: the children of a workflow, page by page."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim, finish
from tests.contract.workflows.sample_workflows import begin, is_spawned, spawn


def test_of_all_groups_of_one_and_in_one_state(store: Store) -> None:
    held = begin(store)
    a = is_spawned(spawn(store, held, 3, path="a")).first_id
    b = is_spawned(spawn(store, held, 2, path="b")).first_id
    loose = is_spawned(spawn(store, held, 1, path="c", detached=True)).first_id
    finish(store, claim(store, tasks=["mail.child"])[0])
    assert store.child_list(held.job_id) == [a, a + 1, a + 2, b, b + 1, loose]
    assert store.child_list(held.job_id, path="b") == [b, b + 1]
    assert store.child_list(held.job_id, state="succeeded") == [a]
    assert store.child_list(held.job_id, path="b", state="succeeded") == []
    assert store.child_list(held.job_id, path="a", state="running", after_id=a + 1) == [a + 2]
    assert store.child_list(held.job_id, after_id=a + 1, limit=2) == [a + 2, b]
    assert store.child_list(held.job_id, path="c") == []
