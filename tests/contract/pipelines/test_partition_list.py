"""partition_list: the partitions of a run."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort
from tests.contract.pipelines.sample_pipeline_runs import claim_of, fanned_out


def test_by_number_and_state(store: Store) -> None:
    """P7: the breakdown of a run."""
    run = fanned_out(store, ["a", "b", "c"])
    abort(store, claim_of(store, "page"), error="boom", fatal=True)
    assert [row.key for row in store.partition_list(run.id)] == ["a", "b", "c"]
    assert [row.key for row in store.partition_list(run.id, after_n=1, limit=1)] == ["b"]
    assert [(row.key, row.error) for row in store.partition_list(run.id, state="failed")] == [("a", "boom")]
    assert store.partition_list(run.id + 999) == []
