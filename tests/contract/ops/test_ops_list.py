"""ops_list: which runs."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.ops.sample_ops_runs import queue_run, run_in


def test_the_newest_first_page_by_page(store: Store) -> None:
    """O1"""
    jobs = [queue_run(store) for _ in range(5)]
    assert [row.job_id for row in store.ops_list(limit=2)] == [jobs[4], jobs[3]]
    assert [row.job_id for row in store.ops_list(before_id=jobs[3], limit=2)] == [jobs[2], jobs[1]]


def test_by_project_environment_and_state(store: Store) -> None:
    ended = run_in(store, "failed").job_id
    waits, elsewhere, other = queue_run(store), queue_run(store, env="production"), queue_run(store, project_id="blog")
    assert [row.job_id for row in store.ops_list(project_id="shop")] == [elsewhere, waits, ended]
    assert [row.job_id for row in store.ops_list(env="staging")] == [other, waits, ended]
    assert [row.job_id for row in store.ops_list(project_id="shop", env="staging", state="queued")] == [waits]
    assert [row.job_id for row in store.ops_list(state="failed")] == [ended]
    assert store.ops_list(project_id="nobody's") == []
