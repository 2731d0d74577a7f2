"""Waits of workflows: times, signals, what comes first, and the park."""

from __future__ import annotations

import asyncio
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from detent import Detent, Retry
from detent.declare.workflow import Local, Step
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.errors import InvalidPayload, WaitTimeout
from detent.testing.harness import Harness
from tests.worker.attempt.workflow.conftest import calls, note, signal, work


def test_a_sleeping_workflow_holds_no_attempt(harness: Harness, app: Detent) -> None:
    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> str:
        ctx.step("begin", note, "begin")
        ctx.sleep(timedelta(days=3))
        return ctx.step("end", note, "end")

    job = order.enqueue()
    work(harness)
    assert (job.refresh().state, calls) == ("pending", ["begin"])
    work(harness, 2 * 86_400)
    assert calls == ["begin"]
    work(harness, 86_401)
    assert (job.refresh().result, calls) == ("end", ["begin", "end"])
    assert [one.outcome for one in harness.store.job_executions(job.id)] == ["parked", "done"]


def test_sleep_until_a_local_time_in_a_gap_of_the_clocks(harness: Harness, app: Detent) -> None:
    assert Local("2027-03-28 02:30", "Europe/Berlin").moment() == datetime(2027, 3, 28, 1, tzinfo=UTC)
    assert Local("2027-10-31 02:30", "Europe/Berlin").moment() == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)

    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> str:
        ctx.sleep_until(datetime(2020, 1, 1, tzinfo=UTC))
        ctx.sleep_until(Local("2027-03-28 02:30", "Europe/Berlin"))
        return "awake"

    job = order.enqueue()
    work(harness)
    assert job.refresh().due_at == datetime(2027, 3, 28, 1, tzinfo=UTC)


@pytest.mark.parametrize("early", [True, False])
def test_a_signal_is_taken_whenever_it_was_sent(harness: Harness, app: Detent, early: bool) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> list[int]:
        return [ctx.wait_for("decision", int), ctx.wait_for("decision", int)]

    job = expense.enqueue()
    if early:
        signal(harness, job, "decision", "1")
    work(harness)
    signal(harness, job, "decision", "2")
    if not early:
        work(harness)
        signal(harness, job, "decision", "3")
    work(harness)
    assert job.refresh().result == ([1, 2] if early else [2, 3])


def test_a_wait_that_times_out_says_so_once_and_for_all(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> str:
        try:
            return ctx.wait_for("decision", str, timeout=60)
        except WaitTimeout:
            ctx.step("escalate", note, "escalate")
        return ctx.wait_for("decision", str)

    job = expense.enqueue()
    work(harness)
    work(harness, 7200)
    assert calls == ["escalate"]
    signal(harness, job, "decision", '"late"')
    work(harness)
    assert job.refresh().result == "late"


def test_the_first_of_several_waits(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> str:
        one = ctx.first(ctx.on("yes", int), ctx.on("no", str), timeout=60)
        two = ctx.first(ctx.on("yes", int), ctx.on("no", str), timeout=60)
        return f"{one.wait.name} {one.value}, {two.wait.name} {two.value}"

    job = expense.enqueue()
    work(harness)
    signal(harness, job, "no", '"never"')
    work(harness)
    signal(harness, job, "yes", "5")
    work(harness)
    assert job.refresh().result == "no never, yes 5"


def test_branches_of_an_async_function_wait_at_the_same_time(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    async def expense(ctx: AsyncWorkflowContext) -> list[str]:
        return list(await asyncio.gather(ctx.wait_for("left", str), ctx.wait_for("right", str)))

    job = expense.enqueue()
    work(harness)
    signal(harness, job, "right", '"r"')
    work(harness)
    assert job.refresh().state == "pending"
    signal(harness, job, "left", '"l"')
    work(harness)
    assert job.refresh().result == ["l", "r"]


def test_a_function_that_swallows_the_park_is_stopped(harness: Harness, app: Detent) -> None:
    """F21: by `ParkSwallowed`, and it is not retried."""

    @app.workflow(name="expense", retry=Retry(5))
    def expense(ctx: WorkflowContext) -> str:
        try:
            ctx.wait_for("decision")
        except BaseException:
            return "went on"
        return "decided"

    job = expense.enqueue()
    work(harness)
    job = job.refresh()
    assert job.state == "quarantined"
    assert "caught the exception that ends the attempt and went on" in (job.error or "")


def test_except_exception_does_not_catch_the_park(harness: Harness, app: Detent) -> None:
    """F21: the park is a BaseException."""

    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> str:
        try:
            return ctx.wait_for("decision", str)
        except Exception:
            return "caught"
        finally:
            note("finally")

    job = expense.enqueue()
    work(harness)
    signal(harness, job, "decision", '"yes"')
    work(harness)
    assert (job.refresh().result, calls) == ("yes", ["finally", "finally"])


def test_a_workflow_that_only_sleeps_is_stopped(harness: Harness, app: Detent) -> None:
    """F22: as spinning."""

    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> None:
        while True:
            ctx.sleep(0)

    job = expense.enqueue()
    work(harness)
    job = job.refresh()
    assert job.state == "quarantined"
    assert "spinning" in (job.error or "")


def test_continue_as_new_begins_again_with_other_arguments(harness: Harness, app: Detent) -> None:
    @app.workflow(name="agent")
    def agent(ctx: WorkflowContext, turn: int = 0) -> str:
        ctx.step("think", note, f"think {turn} {ctx.generation}")
        if turn < 2:
            ctx.continue_as_new(turn=turn + 1)
        return ctx.wait_for("word", str)

    job = agent.enqueue()
    signal(harness, job, "word", '"kept"')
    work(harness)
    assert job.refresh().result == "kept"
    assert calls == ["think 0 1", "think 1 2", "think 2 3"]


@pytest.mark.parametrize("chooses", [False, True])
def test_a_payload_that_does_not_fit_stops_the_workflow_until_another_is_sent(
    harness: Harness, app: Detent, chooses: bool
) -> None:
    """Nothing is undone and no attempt is wasted. null was taken for a value of every type."""

    @app.workflow(name="expense", retry=Retry(3))
    def expense(ctx: WorkflowContext) -> bool:
        ctx.step(Step("ask", undo=lambda _: note("undo")), note, "ask")
        if chooses:
            return bool(ctx.first(ctx.on("decision", bool), ctx.on("veto", bool)).value)
        return ctx.wait_for("decision", bool)

    job = expense.enqueue()
    work(harness)
    signal(harness, job, "decision", "null")
    work(harness)
    assert job.refresh().state == "quarantined"
    assert job.why().endswith("payload of signal 'decision': found `null`; allowed: `bool`")
    path = "first" if chooses else "signal decision"
    assert f"detent workflows rewind {job.id} --to {shlex.quote(path)}" in (job.error or "")
    signal(harness, job, "decision", "true")
    job.rewind(to=path)
    work(harness)
    assert (job.refresh().result, calls) == (True, ["ask"])


def test_the_function_may_catch_a_payload_that_does_not_fit(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> list[str]:
        refused: list[str] = []
        while True:
            try:
                return [*refused, str(ctx.wait_for("decision", bool))]
            except InvalidPayload as error:
                refused.append(str(error))

    job = expense.enqueue()
    for payload in ('"yes"', "null", "true"):
        signal(harness, job, "decision", payload)
    work(harness)
    assert job.refresh().result == [
        "payload of signal 'decision': found `str`; allowed: `bool`",
        "payload of signal 'decision': found `null`; allowed: `bool`",
        "True",
    ]


def test_null_fits_a_wait_that_allows_it(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> list[object]:
        maybe: Any = str | None
        chosen = ctx.first(ctx.on("note", maybe))
        return [ctx.wait_for("note"), ctx.wait_for("note", maybe), ctx.wait_for("note", type(None)), chosen.value]

    job = expense.enqueue()
    for _ in range(4):
        signal(harness, job, "note")
    work(harness)
    assert job.refresh().result == [None, None, None, None]
