"""A pipeline run that failed is retried: nothing that was fetched is fetched again."""

from __future__ import annotations

import asyncio

import pytest

from detent import AsyncPipelineRun
from detent.errors import InvalidTransition, PartOfRun
from detent.testing.harness import Harness
from tests.pipeline.stones import Stones, canonical, declare, worked_off


def test_only_what_failed_is_fetched_again(harness: Harness) -> None:
    """The failed partition goes on at the page where it stopped; then the run completes."""
    source = declare(harness.app)
    source.put(range(20), 100, harness.clock.now())
    source.fails_at = {("part-1", 3)}
    run = worked_off(harness, Stones())
    assert run.state == "failed"
    (failed,) = run.partitions("failed")
    with pytest.raises(PartOfRun, match=f"detent runs retry {run.id}"):
        harness.app.jobs.get(failed.job_id).retry(actor="ana")
    assert "no answer for part-1 at 3" in (harness.app.jobs.get(failed.job_id).error or "")
    source.fails_at, source.asked = set(), source.asked.__class__()
    assert run.retry(actor="ana", reason="the source is back").state == "workers_running"
    harness.work()
    assert run.refresh().state == "completed"
    assert set(source.asked) == {("part-1", 3), ("part-1", 6), ("part-1", 9)}
    assert {times for _, times, _ in canonical(harness.url).values()} == {1}
    assert len(canonical(harness.url)) == 20
    assert harness.app.watermarks.get("stones") == run.captured_at
    assert harness.store.alert_list("firing") == []
    (line,) = [line for line in run.history() if line.trigger == "retry"]
    assert (line.actor, line.reason) == ("ana", "the source is back")
    with pytest.raises(InvalidTransition):
        run.retry(actor="ana")


def test_a_run_is_cancelled_and_retried(harness: Harness) -> None:
    """It fails with the reason, the watermark stays, and another run may begin."""
    source = declare(harness.app)
    source.put(range(10), 100, harness.clock.now())
    run = harness.app.runs.start(Stones())
    with harness.app.acting_as("ana", reason="wrong source"):
        run.cancel()
    assert (run.state, run.error) == ("cancelled", "cancelled by ana: wrong source")
    assert harness.app.watermarks.get("stones") is None
    assert run.cancel().wait(timeout=0).history()[-1].reason == "wrong source"
    assert harness.app.jobs.list(run=run.id, state="pending") == []
    again = worked_off(harness, Stones())
    assert again.state == "completed"
    with pytest.raises(InvalidTransition):
        again.cancel()


def test_a_failed_consolidation_is_retried_without_a_fetch(harness: Harness) -> None:
    """By the async twin, too."""
    source = declare(harness.app)
    source.put(range(10), 100, harness.clock.now())
    source.consolidate_fails_on = "d0003"
    run = worked_off(harness, Stones())
    assert run.state == "failed"
    source.consolidate_fails_on = None
    source.asked.clear()

    async def retried() -> AsyncPipelineRun:
        found = await harness.app.aio.runs.get(run.id, kind="pipeline")
        return await found.retry(actor="ana")

    again = asyncio.run(retried())
    assert again.state == "consolidation_triggered"
    harness.work()
    assert (run.refresh().state, not source.asked, len(canonical(harness.url))) == ("completed", True, 10)
