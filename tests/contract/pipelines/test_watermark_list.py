"""watermark_list: up to when sources are known."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.pipelines.sample_pipeline_runs import completed


def test_by_tenant_and_name(store: Store) -> None:
    """P5: none before the first run has completed."""
    assert store.watermark_list() == []
    completed(store, {}, watermark="z")
    completed(store, {}, watermark="a")
    completed(store, {}, watermark="a", tenant="t")
    assert [(mark.tenant, mark.name) for mark in store.watermark_list()] == [("", "a"), ("", "z"), ("t", "a")]
    assert [mark.name for mark in store.watermark_list(tenant="", name="z")] == ["z"]
