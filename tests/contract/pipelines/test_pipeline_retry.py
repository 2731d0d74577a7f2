"""pipeline_retry: a run that ended without success goes back to work; completed partitions are kept."""

from __future__ import annotations

from datetime import timedelta

from detent.errors import InvalidTransition, NotFound, NotRetryable, RunInProgress
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, finish
from tests.contract.pipelines.sample_pipeline_runs import (
    claim_of,
    completed,
    consolidating,
    failed_run,
    fanned_out,
    page,
    partition,
    run_of,
    start,
    started,
    store_pages,
)
from tests.contract.refusals import Untouched, refused


def test_only_failed_partitions_are_fetched_again_from_where_they_stopped(store: Store) -> None:
    """The run goes on to its consolidation, on record."""
    run_id, job_id = failed_run(store)
    assert store.pipeline_retry(run_id, "ana", "the source is back") == Moved(str(run_id), "workers_running", True)
    run, part = run_of(store, run_id), partition(store, run_id)
    assert (run.parts_ended, run.parts_failed, run.error, run.finished_at) == (1, 0, None, None)
    assert (part.state, part.next_offset, part.tries, part.error) == ("fetching_pages", "5", 0, None)
    line = store.transitions("pipeline_run", str(run_id))[-1]
    assert (line.trigger, line.actor, line.reason) == ("retry", "ana", "the source is back")
    assert store.transitions("job", str(job_id))[-1].actor == "ana"
    (held,) = claim(store, tasks=["detent.pipeline.page/p"])
    assert held.job_id == job_id
    store.page_store(page(run_id, held, records={"z": "1"}, offset="5"))
    finish(store, held)
    consolidator = claim_of(store, "consolidate")
    taken = store.portion_take(run_id, consolidator.job_id, consolidator.attempt, 3)
    assert [key for key, _ in taken.records] == ["x", "y", "z"]  # type: ignore[union-attr]
    assert not store.verify()


def test_a_partition_without_a_page_begins_anew(store: Store) -> None:
    """A skipped run is retried too, while it waits for an operator."""
    run = fanned_out(store)
    abort(store, claim_of(store, "page"), error="boom", fatal=True)
    assert run_of(store, run.id).state == "consolidation_skipped"
    assert store.pipeline_retry(run.id, "ana") == Moved(str(run.id), "workers_running", True)
    assert partition(store, run.id).state == "pending"
    store_pages(store, run.id, {"x": "1"})
    assert run_of(store, run.id).state == "consolidation_triggered"
    assert not store.verify()


def test_a_partition_that_fails_again_fails_the_run_again(store: Store) -> None:
    """And it may be retried once more."""
    run_id, _ = failed_run(store)
    store.pipeline_retry(run_id, "ana")
    abort(store, claim_of(store, "page"), error="boom again", fatal=True)
    assert (run_of(store, run_id).parts_failed, run_of(store, run_id).parts_ended) == (1, 2)
    assert partition(store, run_id).error == "boom again"
    finish(store, claim_of(store, "skipped"))
    assert store.pipeline_retry(run_id, "ana") == Moved(str(run_id), "workers_running", True)
    assert not store.verify()


def test_a_failed_consolidation_goes_on_where_it_stopped(store: Store) -> None:
    """What was consolidated stays so, and the failed portion has all its tries again."""
    run, held = consolidating(store, {"x": "1", "y": "2"}, portion_size=1)
    first = store.portion_take(run.id, held.job_id, held.attempt, 1)
    store.portion_done(run.id, first.n, held.job_id, held.attempt)  # type: ignore[union-attr]
    store.portion_take(run.id, held.job_id, held.attempt, 1)
    abort(store, held, error="boom", fatal=True)
    assert run_of(store, run.id).state == "failed"
    assert store.pipeline_retry(run.id, "ana") == Moved(str(run.id), "consolidation_triggered", True)
    again = claim(store, tasks=["detent.pipeline.consolidate/p"], limit=1)[0]
    taken = store.portion_take(run.id, again.job_id, again.attempt, 1)
    assert (taken.kind, [key for key, _ in taken.records]) == ("portion", ["y"])  # type: ignore[union-attr]
    assert not store.verify()


def test_what_cannot_be_retried_is_refused(store: Store, untouched: Untouched) -> None:
    """A run that is at work or has completed, one without a plan, and one that is not there."""
    run = started(store)
    with untouched():
        refused(store.pipeline_retry(run.id, "ana"), InvalidTransition, from_state="created")
        refused(store.pipeline_retry(run.id + 999, "ana"), NotFound)
    abort(store, claim_of(store, "plan"), error="boom", fatal=True)
    with untouched():
        answer = refused(store.pipeline_retry(run.id, "ana"), NotRetryable, run_id=run.id)
    assert "its plan failed" in str(answer)


def test_another_run_of_the_watermark_goes_first(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """One run of a watermark at a time; and the watermark never moves back."""
    run_id, _ = failed_run(store)
    other = start(store)
    with untouched():
        refused(store.pipeline_retry(run_id, "ana"), RunInProgress, run_id=other.id)
    abort(store, claim_of(store, "plan"), error="boom", fatal=True)
    clock.advance(60)
    newer = completed(store, {"x": "2"})
    with untouched():
        answer = refused(store.pipeline_retry(run_id, "ana"), NotRetryable, run_id=run_id)
    assert f"run {newer.id}" in str(answer)


def test_a_run_whose_records_were_removed_is_refused(store: Store, untouched: Untouched) -> None:
    """Retention takes the staged records of old runs: what was fetched before is gone."""
    run_id, _ = failed_run(store)
    later = store.now() + timedelta(days=1)
    assert store.pipeline_prune(later, store.now() - timedelta(days=1), 100).rows == 2
    with untouched():
        answer = refused(store.pipeline_retry(run_id, "ana"), NotRetryable, run_id=run_id)
    assert "staged records" in str(answer)
