"""The undo of steps: in reverse order, durable, each once, and a person is asked where it fails."""

from __future__ import annotations

import pytest

from detent import Detent, Retry
from detent.declare.workflow import Step
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.testing.harness import Harness
from tests.worker.attempt.workflow.conftest import anote, calls, note, steps, work

ONCE = Retry(0)


def fail() -> None:
    note("ship")
    raise OSError("no lorry")


def test_a_workflow_that_fails_for_good_undoes_its_steps_in_reverse(harness: Harness, app: Detent) -> None:
    """F20: the last step first."""
    keys: list[str] = []

    @app.workflow(name="order", retry=Retry(1, base=1))
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=lambda word: note(f"undo {word}")), note, "reserve")
        ctx.step("think", note, "think")
        ctx.step(Step("charge", undo=lambda word: keys.append(ctx.effect_key + note(f"undo {word}"))), note, "charge")
        ctx.step("ship", fail)

    job = order.enqueue()
    work(harness)
    assert "undo charge" not in calls
    work(harness, 10)
    assert calls == ["reserve", "think", "charge", "ship", "ship", "undo charge", "undo reserve"]
    assert keys[0].endswith(f"/job/{job.id}/1/charge~undoundo charge")
    job = job.refresh()
    assert job.state == "quarantined"
    assert "no lorry" in (job.error or "")
    assert list(steps(harness, job))[-3:] == ["charge~undo", "reserve~undo", "~undone"]


def test_an_async_workflow_undoes_its_steps_too(harness: Harness, app: Detent) -> None:
    async def undo(word: str) -> None:
        await anote(f"undo {word}")

    async def ship() -> None:
        raise OSError("no lorry")

    @app.workflow(name="order", retry=ONCE)
    async def order(ctx: AsyncWorkflowContext) -> None:
        await ctx.step(Step("reserve", undo=undo), anote, "reserve")
        await ctx.step(Step("charge", undo=undo), anote, "charge")
        await ctx.step("ship", ship)

    job = order.enqueue()
    work(harness)
    assert calls == ["reserve", "charge", "undo charge", "undo reserve"]
    assert job.refresh().state == "quarantined"


def test_a_crash_between_two_undos_repeats_neither(harness: Harness, app: Detent) -> None:
    """F20: each undo is a step of its own."""

    def undo(word: str) -> None:
        note(f"undo {word}")
        if word == "reserve" and calls.count("undo reserve") == 1:
            harness.clock.advance(harness.lease + 1)  # the worker is as good as dead

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=undo), note, "reserve")
        ctx.step(Step("charge", undo=undo), note, "charge")
        ctx.step("ship", fail)

    job = order.enqueue()
    work(harness)
    work(harness, 60)
    assert calls == ["reserve", "charge", "ship", "undo charge", "undo reserve", "undo reserve"]
    job = job.refresh()
    assert job.state == "quarantined"
    assert "were undone" in (job.error or "")


def test_an_undo_that_fails_for_good_stops_and_a_retry_goes_on_with_it(harness: Harness, app: Detent) -> None:
    broken = [True]

    def refund(word: str) -> None:
        note("refund")
        if broken:
            raise ValueError("the bank is closed")

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=lambda word: note("release")), note, "reserve")
        ctx.step(Step("charge", undo=refund, retry=ONCE), note, "charge")
        ctx.step("ship", fail)

    job = order.enqueue()
    work(harness)
    job = job.refresh()
    assert job.state == "quarantined"
    assert "the undo of step 'charge'" in (job.error or "")
    assert "release" not in calls
    broken.clear()
    job.retry(actor="ann")
    work(harness)
    assert calls[-2:] == ["refund", "release"]
    assert job.refresh().state == "quarantined"


def test_a_retry_after_the_undo_begins_a_new_generation(harness: Harness, app: Detent) -> None:
    broken = [True]

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> str:
        ctx.step(Step("reserve", undo=lambda word: note("release")), note, f"reserve {ctx.generation}")
        if broken:
            ctx.step("ship", fail)
        return "shipped"

    job = order.enqueue()
    work(harness)
    broken.clear()
    job.retry(actor="ann")
    work(harness)
    assert job.refresh().result == "shipped"
    assert calls == ["reserve 1", "ship", "release", "reserve 2"]


@pytest.mark.parametrize("undo", ["on_failure", "on_request"])
def test_a_workflow_that_is_cancelled_while_it_runs_undoes_its_steps(harness: Harness, app: Detent, undo: str) -> None:
    def reserve() -> str:
        harness.store.job_cancel([job.id], "ann", "sold out")
        return note("reserve")

    @app.workflow(name="order", undo=undo)  # type: ignore[call-overload,untyped-decorator]
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=lambda word: note("release")), reserve)
        ctx.wait_for("go")

    job = order.enqueue()
    work(harness)
    assert job.refresh().state == "cancelled"
    assert calls == (["reserve", "release"] if undo == "on_failure" else ["reserve"])
