"""pipeline_list: runs that fit, the newest first."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.pipelines.sample_pipeline_runs import completed, started


def test_the_newest_first(store: Store) -> None:
    """P7: by state, name and tenant, and page by page."""
    first = completed(store, {})
    second = started(store)
    third = started(store, tenant="t", watermark="other")
    assert [run.id for run in store.pipeline_list()] == [third.id, second.id, first.id]
    assert [run.id for run in store.pipeline_list(state="created")] == [third.id, second.id]
    assert [run.id for run in store.pipeline_list(tenant="")] == [second.id, first.id]
    assert [run.id for run in store.pipeline_list(limit=1, before_id=third.id)] == [second.id]
    assert store.pipeline_list(name="q") == []
