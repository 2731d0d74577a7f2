"""ops_environments: where runs go."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.ops.sample_ops_runs import queue_run


def test_by_project_and_name(store: Store, clock: StoreClock) -> None:
    """O1: each as of its first run."""
    queue_run(store, project_id="shop", env="staging")
    made = clock.now()
    clock.advance(1)
    queue_run(store, project_id="shop", env="staging")
    queue_run(store, project_id="blog", env="Production")
    found = store.ops_environments()
    assert [(one.project_id, one.name) for one in found] == [("blog", "Production"), ("shop", "staging")]
    assert found[1].created_at == made
    assert store.ops_environments("shop") == found[1:]
    assert store.ops_environments("nobody's") == []
