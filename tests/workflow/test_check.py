"""What a check says before a deploy is what then happens: six kinds of change while a workflow is parked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from detent import Detent, Retry
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.model.workflow_records import NewSignal
from detent.testing.harness import Harness
from detent.workflow.aio_check import WorkflowCheck, check_workflow

called: list[str] = []


@pytest.fixture
def harness(store_url: str) -> Iterator[Harness]:
    called.clear()
    with closing(Harness(store_url)) as made:
        yield made


def say(word: str) -> str:
    called.append(word)
    return word


async def asay(word: str) -> str:
    return say(word)


def shout(word: str) -> str:
    return say(word.upper())


def begun(ctx: WorkflowContext) -> str:
    ctx.step("reserve", say, "reserve")
    ctx.step("charge", say, "charge")
    ctx.wait_for("go")
    return ctx.step("ship", say, "ship")


def added_at_the_end(ctx: WorkflowContext) -> str:
    begun(ctx)
    return ctx.step("mail", say, "mail")


def changed_inside(ctx: WorkflowContext) -> str:
    ctx.step("reserve", shout, "reserve")
    ctx.step("charge", shout, "charge")
    ctx.wait_for("go")
    return ctx.step("ship", shout, "ship")


def one_removed(ctx: WorkflowContext) -> str:
    ctx.step("charge", say, "charge")
    ctx.wait_for("go")
    return ctx.step("ship", say, "ship")


def one_inserted(ctx: WorkflowContext) -> str:
    ctx.step("reserve", say, "reserve")
    ctx.step("audit", say, "audit")
    ctx.step("charge", say, "charge")
    ctx.wait_for("go")
    return ctx.step("ship", say, "ship")


def branched(ctx: WorkflowContext) -> str:
    return one_inserted(ctx) if ctx.version >= 2 else begun(ctx)


def deployed(harness: Harness, function: Callable[..., Any], **options: Any) -> Detent:
    """Another version of the code on the same database."""
    app = harness.use(Detent(harness.url))
    app.workflow(name="order", retry=Retry(0), **options)(function)
    return app


def checked(harness: Harness, app: Detent, job_id: int) -> WorkflowCheck:
    (row,) = harness.store.job_get([job_id])
    assert row is not None
    (workflow,) = harness.store.workflow_get([job_id])
    return check_workflow(harness.store, app.settings, row, workflow, app.find_task)


@pytest.mark.parametrize(
    ("function", "options", "verdict"),
    [
        (added_at_the_end, {}, "continues"),
        (changed_inside, {}, "continues"),
        (one_removed, {}, "continues"),
        (one_inserted, {}, "drift"),
        (branched, {"version": 2, "supports": (1, 2)}, "continues"),
        (one_inserted, {"version": 2}, "unsupported version"),
    ],
)
def test_a_check_says_what_then_happens(
    harness: Harness, function: Callable[..., Any], options: dict[str, Any], verdict: str
) -> None:
    """F12: before a deploy of six kinds of change."""
    old = deployed(harness, begun)
    job = old.enqueue(old.find_task("order").call())
    harness.work()
    assert called == ["reserve", "charge"]
    new = deployed(harness, function, **options)
    found = checked(harness, new, job.id)
    assert called == ["reserve", "charge"]
    assert (found.verdict, found.version) == (verdict, 1)
    if verdict == "drift":
        assert "about to run step 'audit', but step 'charge' is on record" in found.detail

    harness.store.signal_send([NewSignal(job_id=job.id, name="go", payload="null", actor="ann")])
    harness.work()
    state = new.jobs.get(job.id).state
    assert state == {"continues": "succeeded", "drift": "quarantined", "unsupported version": "pending"}[verdict]
    assert called.count("reserve") == 1
    assert "audit" not in called


def signal_renamed(ctx: WorkflowContext) -> None:
    ctx.step("reserve", say, "reserve")
    ctx.step("charge", say, "charge")
    ctx.wait_for("proceed")


def wait_removed(ctx: WorkflowContext) -> None:
    ctx.step("reserve", say, "reserve")
    ctx.step("charge", say, "charge")
    ctx.step("ship", say, "ship")


def signal_added(ctx: WorkflowContext) -> None:
    ctx.step("reserve", say, "reserve")
    ctx.step("charge", say, "charge")
    ctx.first(ctx.on("proceed"), ctx.on("go"))


@pytest.mark.parametrize(
    ("function", "verdict", "detail"),
    [
        (begun, "continues", "with the wait for signal go"),
        (
            signal_renamed,
            "stays parked",
            "for signal go, and this code goes on with the wait for signal proceed: send it signal go",
        ),
        (wait_removed, "stays parked", "for signal go, and this code goes on with step ship: send it signal go"),
        (signal_added, "continues", "with the wait for signal proceed or signal go"),
    ],
)
def test_a_workflow_that_waits_for_what_the_code_does_not_send_any_more(
    harness: Harness, function: Callable[..., Any], verdict: str, detail: str
) -> None:
    """Its record fits, so it was said to continue; but a signal with the new name does not wake it."""
    old = deployed(harness, begun)
    job = old.enqueue(old.find_task("order").call())
    harness.work()
    new = deployed(harness, function)
    found = checked(harness, new, job.id)
    assert (found.verdict, found.detail) == (verdict, detail)
    new.jobs.get(job.id).signal("proceed")
    harness.work()
    assert new.workflows.get(job.id).state == "parked"
    new.jobs.get(job.id).signal("go")
    harness.work()
    assert new.jobs.get(job.id).state == "succeeded"


def waits_for_a_day(ctx: WorkflowContext) -> None:
    ctx.wait_for("go", timeout=86_400)


def test_a_time_limit_wakes_a_workflow_too(harness: Harness) -> None:
    def waits_for_another(ctx: WorkflowContext) -> None:
        ctx.wait_for("proceed", timeout=86_400)

    old = deployed(harness, waits_for_a_day)
    job = old.enqueue(old.find_task("order").call())
    harness.work()
    assert checked(harness, deployed(harness, waits_for_another), job.id).verdict == "continues"


def test_an_async_workflow_is_checked_too(harness: Harness) -> None:
    async def first(ctx: AsyncWorkflowContext) -> None:
        await ctx.step("reserve", asay, "reserve")
        await ctx.wait_for("go")

    async def second(ctx: AsyncWorkflowContext) -> None:
        await ctx.step("audit", asay, "audit")
        await first(ctx)

    old = deployed(harness, first)
    job = old.enqueue(old.find_task("order").call())
    harness.work()
    assert checked(harness, deployed(harness, first), job.id).verdict == "continues"
    assert checked(harness, deployed(harness, second), job.id).verdict == "drift"
    assert called == ["reserve"]
