"""pipeline_get: a run with its sums."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.pipelines.sample_pipeline_runs import completed


def test_as_it_stands(store: Store) -> None:
    """P7: what its partitions brought, added up."""
    run = completed(store, {"a": "1", "b": "2"}, tenant="t", payload='{"x":1}')
    assert (run.name, run.tenant, run.payload, run.state) == ("p", "t", '{"x":1}', "completed")
    assert (run.partitions, run.parts_ended, run.parts_failed) == (1, 1, 0)
    assert (run.pages, run.records, run.staged, run.consolidated, run.retired) == (1, 2, 2, 2, 0)
    assert store.pipeline_get(run.id + 999) is None
