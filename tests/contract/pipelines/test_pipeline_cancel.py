"""pipeline_cancel: a run ends at once, on record, and what its jobs still do changes nothing of it."""

from __future__ import annotations

from contextlib import suppress

import pytest

from detent.errors import InvalidTransition, NotFound, NotRetryable
from detent.lifecycle.library import PIPELINE_RUN
from detent.model.records import Moved
from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import broken
from tests.contract.jobs.sample_jobs import abort, claim, finish
from tests.contract.pipelines.sample_pipeline_runs import (
    claim_of,
    completed,
    consolidating,
    failed_run,
    fanned_out,
    page,
    parts_of,
    run_of,
    start,
    started,
)
from tests.contract.refusals import Untouched, refused


def run_in(store: Store, state: str) -> int:
    """A run in this state, in the ordinary way."""
    match state:
        case "created":
            return started(store).id
        case "workers_running":
            return fanned_out(store).id
        case "consolidation_triggered":
            return fanned_out(store, []).id
        case "consolidating":
            return consolidating(store, {"a": "1"})[0].id
        case _:
            run = fanned_out(store)
            abort(store, claim_of(store, "page"), error="boom", fatal=True)
            return run.id


@pytest.mark.parametrize("state", [one for one in PIPELINE_RUN.states if "cancelled" in PIPELINE_RUN.allowed(one)])
def test_it_ends_at_once_and_another_run_may_begin(store: Store, store_url: str, state: str) -> None:
    """P1, R1: with actor and reason; the watermark stays."""
    run_id = run_in(store, state)
    assert run_of(store, run_id).state == state
    assert store.pipeline_cancel(run_id, "cy", "wrong source") == Moved(str(run_id), "cancelled", True)
    row = run_of(store, run_id)
    assert (row.state, row.error, row.finished_at) == ("cancelled", "cancelled by cy: wrong source", row.moved_at)
    line = store.transitions("pipeline_run", str(run_id))[-1]
    assert (line.from_state, line.trigger, line.actor, line.reason) == (state, "cancel", "cy", "wrong source")
    assert store.watermark_list() == []
    assert start(store).state == "created"
    assert broken(store, store_url) == []


def test_jobs_that_end_later_change_no_state(store: Store, store_url: str) -> None:
    """P3: neither the last partition nor the plan brings it back, and it is retried when all of them have ended."""
    run = fanned_out(store, ["a", "b"])
    one, two = claim(store, tasks=["detent.pipeline.page/p"])
    store.pipeline_cancel(run.id, "cy")
    refused(store.pipeline_retry(run.id, "ana"), NotRetryable)
    store.page_store(page(run.id, one, records={"x": "1"}))
    finish(store, one)
    store.job_cancel([two.job_id], "cy", None)
    with suppress(ValueError):
        claim_of(store, "skipped")
    assert (run_of(store, run.id).state, run_of(store, run.id).parts_ended) == ("cancelled", 1)
    abort(store, two, outcome="cancelled")
    assert (run_of(store, run.id).state, run_of(store, run.id).parts_ended) == ("cancelled", 2)
    assert broken(store, store_url) == []
    assert store.pipeline_retry(run.id, "ana") == Moved(str(run.id), "workers_running", True)
    assert broken(store, store_url) == []


def test_a_plan_that_comes_later_is_not_carried_out(store: Store, store_url: str) -> None:
    """P2"""
    run = started(store)
    held = claim_of(store, "plan")
    store.pipeline_cancel(run.id, "cy")
    answer = store.pipeline_fan_out(run.id, held.job_id, held.attempt, parts_of(store, run.id, ["a"]))
    assert answer == Moved(str(run.id), "cancelled", False)
    assert store.partition_list(run.id) == []
    assert broken(store, store_url) == []


def test_cancelled_once(store: Store, untouched: Untouched) -> None:
    """G8"""
    run = fanned_out(store)
    store.pipeline_cancel(run.id, "cy", "wrong source")
    with untouched():
        assert store.pipeline_cancel(run.id, "dan") == Moved(str(run.id), "cancelled", False)


def test_a_run_that_has_ended_is_refused(store: Store, untouched: Untouched) -> None:
    """P1"""
    done = completed(store, {"a": "1"})
    with untouched():
        refused(store.pipeline_cancel(done.id, "cy"), InvalidTransition, from_state="completed")
        refused(store.pipeline_cancel(done.id + 999, "cy"), NotFound)
    run_id, _ = failed_run(store)
    refused(store.pipeline_cancel(run_id, "cy"), InvalidTransition, from_state="failed")
