"""gone_take: what earlier runs had and a full run did not see."""

from __future__ import annotations

import pytest

from detent.errors import LeaseLost
from detent.model.pipeline_records import ConsolidationStep
from detent.model.records import Claimed
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, finish
from tests.contract.pipelines.sample_pipeline_runs import (
    block_done,
    claim_of,
    completed,
    consolidating,
    fanned_out,
    page,
    run_of,
)
from tests.contract.refusals import refused

OLD = {"a": "1", "b": "1", "c": "1"}


def ending(store: Store, run_id: int, held: Claimed) -> None:
    """Consolidate everything and be the one who ends the run."""
    while (portion := store.portion_take(run_id, held.job_id, held.attempt, 3)) != ConsolidationStep("finish", 0, 1):
        assert isinstance(portion, ConsolidationStep)
        block_done(store, run_id, held, portion)


def test_a_full_run_tells_what_is_gone(store: Store, clock: StoreClock) -> None:
    """P6: in the order of the keys, as many as asked for."""
    completed(store, OLD, retires=True)
    clock.advance(60)
    run, held = consolidating(store, {"b": "2"}, retires=True, full=True)
    refused(store.gone_take(run.id, held.job_id, held.attempt, 10), LeaseLost)
    ending(store, run.id, held)
    assert store.gone_take(run.id, held.job_id, held.attempt, 10) == ["a", "c"]
    assert store.gone_take(run.id, held.job_id, held.attempt, 1) == ["a"]


@pytest.mark.parametrize("how", [{}, {"retires": False, "full": True}])
def test_an_incremental_run_or_one_that_does_not_retire_tells_nothing(
    store: Store, clock: StoreClock, how: dict[str, bool]
) -> None:
    """P6: what an incremental run did not see has not changed, no more."""
    completed(store, OLD, retires=True)
    clock.advance(60)
    run, held = consolidating(store, {"b": "2"}, **({"retires": True} | how))
    ending(store, run.id, held)
    assert store.gone_take(run.id, held.job_id, held.attempt, 10) == []


def test_a_full_run_that_saw_nothing_retires_nothing(store: Store, clock: StoreClock) -> None:
    """P6: an empty source is more likely a broken one."""
    completed(store, OLD, retires=True)
    clock.advance(60)
    run, held = consolidating(store, {}, retires=True, full=True)
    ending(store, run.id, held)
    assert store.gone_take(run.id, held.job_id, held.attempt, 10) == []


def test_a_forced_run_with_failed_partitions_retires_nothing(store: Store, clock: StoreClock) -> None:
    """P3, P6: what a failed partition would have brought is not gone."""
    completed(store, OLD, retires=True)
    clock.advance(60)
    forced = {"retires": True, "full": True, "forced": True, "reason": "go", "started_by": "ana"}
    run = fanned_out(store, ["x", "y"], **forced)
    one, two = claim(store, tasks=["detent.pipeline.page/p"])
    abort(store, one, error="boom", fatal=True)
    store.page_store(page(run.id, two, n=2, records={"b": "2"}))
    finish(store, two)
    held = claim_of(store, "consolidate")
    ending(store, run.id, held)
    assert store.gone_take(run.id, held.job_id, held.attempt, 10) == []
    assert run_of(store, run.id).parts_failed == 1
