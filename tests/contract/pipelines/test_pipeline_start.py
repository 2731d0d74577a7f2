"""pipeline_start: a run begins with its planning job, and only one of a watermark at a time."""

from __future__ import annotations

from detent.errors import IdConflict, RunInProgress
from detent.model.pipeline_records import PipelineRunRow
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import StoreClock
from tests.contract.pipelines.sample_pipeline_runs import claim_of, completed, described, run_of, start, started
from tests.contract.refusals import Untouched, refused


def test_the_first_run_is_full_and_captures_the_time(store: Store, clock: StoreClock) -> None:
    """P1, P5: no watermark, so everything; the time is that of the database, now."""
    run = started(store, payload='{"x":1}', started_by="ana")
    assert (run.state, run.is_full, run.since, run.captured_at) == ("created", True, None, clock.now())
    assert (run.partitions, run.records, run.consolidated) == (0, 0, 0)
    held = claim_of(store, "plan")
    assert held.run_id == run.id
    (line,) = store.transitions("pipeline_run", str(run.id))
    assert (line.from_state, line.to_state, line.actor) == (None, "created", "ana")


def test_a_later_run_begins_at_the_watermark(store: Store, clock: StoreClock) -> None:
    """P1, P5: incremental, since the time the last one captured at its beginning."""
    first = completed(store, {"k": "1"})
    clock.advance(60)
    second = started(store)
    assert (second.is_full, second.since, second.captured_at) == (False, first.captured_at, clock.now())
    assert started(store, watermark="other").is_full


def test_full_again_where_asked_for(store: Store, clock: StoreClock) -> None:
    """P1, P6: as if there were no watermark; the time it captures is still a later one."""
    first = completed(store, {})
    clock.advance(5)
    again = started(store, full=True)
    assert (again.is_full, again.since) == (True, None)
    assert first.captured_at < again.captured_at


def test_one_run_of_a_watermark_at_a_time(store: Store, untouched: Untouched) -> None:
    """P1: a second one would not know from where to go on. Another tenant's is another watermark."""
    run = started(store)
    second = described(store)
    with untouched():
        refused(store.pipeline_start(second), RunInProgress, watermark="w", run_id=run.id)
    assert isinstance(start(store, tenant="b"), PipelineRunRow)


def test_the_same_id_again_is_the_same_run(store: Store) -> None:
    """J2: asked again after a lost answer; with another payload it is somebody else's."""
    run = started(store)
    assert start(store, id=run.id) == run
    refused(start(store, id=run.id, payload='{"y":2}'), IdConflict)


def test_a_plan_that_somebody_stops_says_why(store: Store) -> None:
    """E4, J8: the run has failed, and its record has the reason that was given."""
    run = started(store)
    (job,) = store.job_list(JobSearch(task="detent.pipeline.plan/p")).rows
    store.job_cancel([job.id], "ana", "the wrong supplier")
    *_, last = store.transitions("pipeline_run", str(run.id))
    assert (last.to_state, last.reason) == ("failed", f"job {job.id} is cancelled: the wrong supplier")
    assert run_of(store, run.id).error == "the wrong supplier"
    assert isinstance(start(store), PipelineRunRow)
