"""pipeline_complete: the run and its watermark move together."""

from __future__ import annotations

from detent.errors import LeaseLost
from detent.model.pipeline_records import ConsolidationStep
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.pipelines.sample_pipeline_runs import block_done, completed, consolidating, run_of
from tests.contract.refusals import Untouched, refused


def test_the_watermark_is_the_time_before_the_first_fetch(store: Store, clock: StoreClock) -> None:
    """P5: however long it took; the run and the watermark have one moment."""
    run, held = consolidating(store, {"a": "1"})
    clock.advance(20)
    portion = store.portion_take(run.id, held.job_id, held.attempt, 3)
    assert isinstance(portion, ConsolidationStep)
    block_done(store, run.id, held, portion)
    store.portion_take(run.id, held.job_id, held.attempt, 3)
    assert store.pipeline_complete(run.id, held.job_id, held.attempt) == Moved(str(run.id), "completed", True)
    assert store.pipeline_complete(run.id, held.job_id, held.attempt) == Moved(str(run.id), "completed", False)
    row = run_of(store, run.id)
    (mark,) = store.watermark_list()
    assert (mark.name, mark.value, mark.run_id, mark.moved_at) == ("w", row.created_at, run.id, row.finished_at)
    assert row.finished_at == clock.now() > mark.value
    states = [line.to_state for line in store.transitions("pipeline_run", str(run.id))]
    assert states == ["created", "workers_running", "consolidation_triggered", "consolidating", "completed"]


def test_it_moves_with_every_run(store: Store, clock: StoreClock) -> None:
    """P5: forward, one row."""
    completed(store, {"a": "1"})
    clock.advance(60)
    second = completed(store, {"a": "2"})
    (mark,) = store.watermark_list()
    assert (mark.value, mark.run_id) == (second.captured_at, second.id)


def test_not_while_anything_is_left_and_not_by_anybody(store: Store, untouched: Untouched) -> None:
    """P5: only who ends the run, when all of it is consolidated."""
    run, held = consolidating(store, {"a": "1"})
    with untouched():
        refused(store.pipeline_complete(run.id, held.job_id, held.attempt), LeaseLost)
    store.portion_take(run.id, held.job_id, held.attempt, 3)
    with untouched():
        refused(store.pipeline_complete(run.id, held.job_id, held.attempt), LeaseLost)
        refused(store.pipeline_complete(run.id, held.job_id, held.attempt + 1), LeaseLost)
    assert store.watermark_list() == []
