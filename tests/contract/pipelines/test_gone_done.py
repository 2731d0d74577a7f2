"""gone_done: what is retired is forgotten, by whoever ends the run."""

from __future__ import annotations

from detent.errors import LeaseLost
from detent.model.pipeline_records import ConsolidationStep
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.pipelines.sample_pipeline_runs import block_done, completed, consolidating, run_of
from tests.contract.refusals import Untouched, refused


def test_retired_once(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """P6: counted, and not among those that are gone any more."""
    completed(store, {"a": "1", "b": "1"}, retires=True)
    clock.advance(60)
    run, held = consolidating(store, {"b": "2"}, retires=True, full=True)
    portion = store.portion_take(run.id, held.job_id, held.attempt, 3)
    assert isinstance(portion, ConsolidationStep)
    with untouched():
        refused(store.gone_done(run.id, held.job_id, held.attempt, ["a"]), LeaseLost)
    block_done(store, run.id, held, portion)
    store.portion_take(run.id, held.job_id, held.attempt, 3)
    assert store.gone_done(run.id, held.job_id, held.attempt, ["a"]) == Moved(str(run.id), "consolidating", True)
    assert store.gone_done(run.id, held.job_id, held.attempt, ["a"]) == Moved(str(run.id), "consolidating", False)
    assert store.gone_take(run.id, held.job_id, held.attempt, 10) == []
    assert run_of(store, run.id).retired == 1
