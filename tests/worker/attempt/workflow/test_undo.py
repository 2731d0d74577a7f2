"""The undo of steps: in reverse order, durable, each once, and a person is asked where it fails."""

from __future__ import annotations

import pytest

from detent import Detent, Fatal, Retry
from detent.declare.workflow import Step
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.errors import InvalidInput
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


@pytest.mark.parametrize("hidden", [False, True])
def test_a_plain_workflow_does_not_take_an_async_undo_for_done(harness: Harness, app: Detent, hidden: bool) -> None:
    """Its coroutine was never run, and the step was recorded as undone."""

    async def refund(word: str) -> None:
        await anote(f"undo {word}")

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> None:
        undo = (lambda word: refund(word)) if hidden else refund
        ctx.step(Step("charge", undo=undo, retry=ONCE), note, "charge")
        ctx.step("ship", fail)

    job = order.enqueue()
    work(harness)
    job = job.refresh()
    assert job.state == "quarantined"
    if hidden:
        assert "the undo of step 'charge'" in (job.error or "")
        assert "found a coroutine" in (job.error or "")
        assert "charge~undo" not in steps(harness, job)
    else:
        assert "undo of step 'charge': found the async function" in (job.error or "")
        assert calls == []


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


@pytest.mark.parametrize("undo", ["on_failure", "on_request"])
def test_a_workflow_that_is_cancelled_while_it_waits_undoes_its_steps(harness: Harness, app: Detent, undo: str) -> None:
    """F20: it is woken for that, in one attempt, and ends as cancelled."""

    @app.workflow(name="order", undo=undo)  # type: ignore[call-overload,untyped-decorator]
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=lambda word: note("release")), note, "reserve")
        ctx.step(Step("charge", undo=lambda word: note("refund")), note, "charge")
        ctx.wait_for("go")
        ctx.step("ship", note, "ship")

    job = order.enqueue()
    work(harness)
    assert job.cancel(actor="ann", reason="sold out").state == "pending"
    assert "ann asked for it to stop: sold out" in job.why()
    work(harness)
    job = job.refresh()
    assert (job.state, job.row.attempt) == ("cancelled", 2)
    assert calls == ["reserve", "charge", *(["refund", "release"] if undo == "on_failure" else [])]
    assert harness.store.verify() == []


def test_an_async_workflow_that_is_cancelled_undoes_its_steps_too(harness: Harness, app: Detent) -> None:
    """F20: while it waits, and while it runs."""

    async def release(word: str) -> None:
        await anote("release")

    async def reserve(ctx: AsyncWorkflowContext) -> str:
        if ctx.metadata:
            harness.store.job_cancel([ctx.job_id], "ann")
        return await anote("reserve")

    @app.workflow(name="order")
    async def order(ctx: AsyncWorkflowContext) -> None:
        await ctx.step(Step("reserve", undo=release), reserve, ctx)
        await ctx.wait_for("go")

    waiting, running = order.enqueue(), app.enqueue(order.call(), metadata={"cancel": True})
    work(harness)
    waiting.cancel()
    work(harness)
    assert [job.refresh().state for job in (waiting, running)] == ["cancelled"] * 2
    assert sorted(calls) == ["release", "release", "reserve", "reserve"]


def test_a_crash_in_the_undo_of_a_cancel_goes_on_with_it(harness: Harness, app: Detent) -> None:
    """F20: the request stays, and the job ends as cancelled when all steps are undone."""

    def undo(word: str) -> None:
        note(f"undo {word}")
        if calls.count(f"undo {word}") == 1:
            harness.clock.advance(harness.lease + 1)  # the worker is as good as dead

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=undo), note, "reserve")
        ctx.step(Step("charge", undo=undo), note, "charge")
        ctx.wait_for("go")

    job = order.enqueue()
    work(harness)
    job.cancel(actor="ann")
    for _ in range(3):
        work(harness, 60)
        assert harness.store.verify() == []
    assert job.refresh().state == "cancelled"
    assert calls == ["reserve", "charge", *["undo charge"] * 2, *["undo reserve"] * 2]


def test_an_undo_of_a_cancel_has_its_retries_and_asks_a_person_at_last(harness: Harness, app: Detent) -> None:
    """F20: also those that park the workflow."""

    def refund(word: str) -> None:
        note("refund")
        if calls.count("refund") < 3 or word == "never":
            raise OSError("the bank is closed")

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext, word: str) -> None:
        ctx.step(Step("charge", undo=refund, retry=Retry(2, base=30, jitter=0)), note, word)
        ctx.wait_for("go")

    jobs = [order.enqueue(word="charge"), order.enqueue(word="never")]
    for job, state in zip(jobs, ("cancelled", "quarantined"), strict=True):
        calls.clear()
        work(harness)
        job.cancel(actor="ann")
        work(harness)
        assert "retry of step charge~undo" in job.why()
        for _ in range(3):
            work(harness, 100)
        assert job.refresh().state == state
        assert calls.count("refund") == 3
        assert harness.store.verify() == []


def test_a_cancel_without_undo(harness: Harness, app: Detent) -> None:
    """F20: a reason is required and on record; nothing is undone, whether the workflow waits or runs."""

    def reserve(ctx: WorkflowContext) -> str:
        if ctx.metadata:
            app.jobs.get(ctx.job_id).cancel(undo=False, actor="ann", reason="it was a test")
        return note("reserve")

    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=lambda word: note("release")), reserve, ctx)
        ctx.wait_for("go")

    waiting, running = order.enqueue(), app.enqueue(order.call(), metadata={"cancel": True})
    work(harness)
    with pytest.raises(InvalidInput, match="a reason"):
        waiting.cancel(undo=False)
    assert waiting.cancel(undo=False, reason="it was a test").state == "cancelled"
    for job in (waiting, running):
        assert job.refresh().state == "cancelled"
        assert '{"undo":false}' in [line.metadata for line in job.history()]
    assert calls == ["reserve", "reserve"]
    assert harness.store.verify() == []


def test_the_children_of_a_cancelled_workflow_undo_their_steps_too(harness: Harness, app: Detent) -> None:
    """F11, F20: a detached child lives on."""

    @app.workflow(name="child")
    def child(ctx: WorkflowContext, name: str) -> None:
        ctx.step(Step("reserve", undo=lambda word: note(f"release {name}")), note, f"reserve {name}")
        ctx.wait_for("go")

    @app.workflow(name="parent")
    def parent(ctx: WorkflowContext) -> None:
        ctx.spawn(child.call("alone"), name="alone", detached=True)
        ctx.join(ctx.spawn(child.call("own"), name="own"))

    job = parent.enqueue()
    work(harness)
    job.cancel(actor="ann", reason="sold out")
    assert job.why() == (
        "it was cancelled (cancel by ann: sold out); the children of one job are still to be cancelled"
    )
    work(harness)
    assert calls[2:] == ["release own"]
    states = {one.task: one.state for one in app.jobs.list(task="child")}
    assert sorted(one.state for one in app.jobs.list(task="child")) == ["cancelled", "pending"], states
    assert job.why() == "it was cancelled (cancel by ann: sold out)"
    assert harness.store.verify() == []


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_a_crash_after_the_last_undo_does_not_begin_anew(harness: Harness, app: Detent, is_async: bool) -> None:
    """F20: the steps are undone, and the attempt that did so could not say it any more. The next one says it. Only a
    retry by a person begins the workflow again."""

    async def undo(word: str) -> None:
        note(f"undo {word}")

    if is_async:

        @app.workflow(name="order", retry=Retry(2, base=1))
        async def aorder(ctx: AsyncWorkflowContext) -> None:
            await ctx.step(Step("reserve", undo=undo), anote, "reserve")
            raise Fatal("no lorry")

    else:

        @app.workflow(name="order", retry=Retry(2, base=1))
        def order(ctx: WorkflowContext) -> None:
            ctx.step(Step("reserve", undo=lambda word: note(f"undo {word}")), note, "reserve")
            raise Fatal("no lorry")

    job = app.enqueue(app.find_task("order").call())
    harness.crash(job, "recorded ~undone")
    harness.work(skip=True)
    assert calls == ["reserve", "undo reserve"]
    assert (job.refresh().state, harness.app.workflows.get(job.id).generation) == ("quarantined", 1)
    assert [one.outcome for one in job.executions()] == ["expired", "error"]
    job.retry(actor="ann")
    harness.work(skip=True)
    assert calls == ["reserve", "undo reserve"] * 2
    assert harness.app.workflows.get(job.id).generation == 2
