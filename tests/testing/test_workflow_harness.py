"""The fixture `detent` and workflows: skipped time, signals, and workers that die at a step."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from detent.declare.workflow import Step, StepCall
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.errors import InvalidInput, WaitTimeout, WrongPlace
from detent.testing.harness import Harness
from detent.testing.stores import START

calls: list[str] = []


def say(word: str) -> str:
    calls.append(word)
    return word


@pytest.fixture
def detent(store_url: str) -> Iterator[Harness]:
    calls.clear()
    with closing(Harness(store_url)) as one:
        yield one


def declare_order(detent: Harness) -> Any:
    @detent.app.workflow(name="order")
    def order(ctx: WorkflowContext) -> str:
        ctx.step("reserve", say, "reserve")
        ctx.step("charge", say, "charge")
        ctx.sleep(timedelta(days=3))
        ctx.step("ship", say, "ship")
        try:
            return ctx.wait_for("rating", str, timeout=timedelta(days=30))
        except WaitTimeout:
            return "not rated"

    return order


def test_time_is_skipped_until_nothing_is_due(detent: Harness) -> None:
    job = declare_order(detent).enqueue()
    assert len(detent.work(skip=True)) == 3
    assert job.refresh().result == "not rated"
    assert detent.clock.now() == START + timedelta(days=33)
    assert detent.store.worker_list(1e9) == []


def test_a_workflow_that_waits_for_a_signal_stays_parked(detent: Harness) -> None:
    @detent.app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> str:
        return ctx.wait_for("decision", str)

    job = expense.enqueue()
    detent.work(skip=True)
    assert (job.refresh().state, detent.clock.now()) == ("pending", START)
    job.signal("decision", "yes")
    detent.work(skip=True)
    assert job.refresh().result == "yes"


def test_the_whole_tree_is_cancelled_at_once(detent: Harness) -> None:
    """On PostgreSQL, only the first level was: a step leaves the next level to another one."""

    @detent.app.workflow(name="leaf")
    def leaf(ctx: WorkflowContext) -> Any:
        return ctx.wait_for("never")

    @detent.app.workflow(name="branch")
    def branch(ctx: WorkflowContext, depth: int) -> Any:
        return ctx.join(ctx.spawn(branch.call(depth=depth - 1) if depth else leaf.call()))

    job = branch.enqueue(depth=3)
    detent.work()
    job.cancel()
    detent.work()
    nodes = job.tree().nodes
    assert ([one.state for one in nodes], len(nodes)) == (["cancelled"] * 5, 5)


def test_a_workflow_that_never_ends_is_refused(detent: Harness) -> None:
    @detent.app.workflow(name="watch")
    def watch(ctx: WorkflowContext) -> None:
        ctx.step("look", say, "look")
        ctx.sleep(60)
        ctx.continue_as_new()

    watch.enqueue()
    with pytest.raises(WrongPlace, match="for more than 20 attempts"):
        detent.work(skip=True, most=20)


@pytest.mark.parametrize(
    ("at", "called"),
    [
        ("called charge", ["reserve", "charge", "charge", "ship"]),
        ("recorded charge", ["reserve", "charge", "ship"]),
        ("recorded sleep", ["reserve", "charge", "ship"]),
        ("parking", ["reserve", "charge", "ship"]),
        ("called ship", ["reserve", "charge", "ship", "ship"]),
        ("recorded signal rating", ["reserve", "charge", "ship"]),
        ("returned", ["reserve", "charge", "ship"]),
    ],
)
def test_a_worker_dies_at_a_step(detent: Harness, at: str, called: list[str]) -> None:
    """The clock is also turned to the end of the dead worker's lease."""
    job = declare_order(detent).enqueue()
    detent.crash(job, at)
    detent.work(skip=True)
    assert job.refresh().result == "not rated"
    assert calls == called
    assert "expired" in [one.outcome for one in job.executions()]
    assert detent.store.verify() == []


@pytest.mark.parametrize(("at", "rows"), [("called book", ["one"]), ("recorded book", ["one"])])
def test_a_worker_dies_at_a_transaction(detent: Harness, at: str, rows: list[str]) -> None:
    def book(tx: Any) -> None:
        tx.execute("INSERT INTO booked (word) VALUES ('one')")
        say("book")

    @detent.app.workflow(name="order")
    def order(ctx: WorkflowContext) -> list[str]:
        ctx.transact("table", lambda tx: tx.execute("CREATE TABLE booked (word text)") and None)
        ctx.transact("book", book)
        return ctx.transact("read", lambda tx: [row[0] for row in tx.execute("SELECT word FROM booked")[0]])

    job = order.enqueue()
    detent.crash(job, at)
    detent.work(skip=True)
    assert job.refresh().result == rows
    assert len(calls) == (2 if at == "called book" else 1)


@pytest.mark.parametrize("at", ["called left", "recorded left", "parking"])
def test_a_worker_dies_in_an_async_workflow(detent: Harness, at: str) -> None:
    async def asay(word: str) -> str:
        await asyncio.sleep(0)
        return say(word)

    @detent.app.workflow(name="order")
    async def order(ctx: AsyncWorkflowContext) -> list[str]:
        found = await asyncio.gather(ctx.step("left", asay, "left"), ctx.step("right", asay, "right"))
        await ctx.sleep(60)
        return list(found)

    job = order.enqueue()
    detent.crash(job, at)
    asyncio.run(detent.awork(skip=True))
    assert job.refresh().result == ["left", "right"]
    assert calls.count("left") == (2 if at == "called left" else 1)
    assert "expired" in [one.outcome for one in job.executions()]


def test_a_worker_dies_in_one_of_several_steps_at_once(detent: Harness) -> None:
    @detent.app.workflow(name="order")
    def order(ctx: WorkflowContext) -> list[str]:
        return ctx.gather(*(StepCall(Step("say", key=n), say, f"{n}") for n in range(4)), slots=1)

    job = order.enqueue()
    detent.crash(job, "called say:2")
    detent.work(skip=True)
    assert job.refresh().result == ["0", "1", "2", "3"]
    assert calls.count("0") == calls.count("1") == 1
    assert calls.count("2") == 2


def test_a_point_that_is_not_reached_changes_nothing(detent: Harness) -> None:
    job = declare_order(detent).enqueue()
    detent.crash(job, "called refund")
    detent.work(skip=True)
    assert job.refresh().result == "not rated"
    assert [one.outcome for one in job.executions()] == ["parked", "parked", "done"]


@pytest.mark.parametrize("at", ["charge", "called ", "after charge", "recorded"])
def test_an_unknown_point_is_refused(detent: Harness, at: str) -> None:
    job = declare_order(detent).enqueue()
    with pytest.raises(InvalidInput, match="parking, called STEP, recorded STEP"):
        detent.crash(job, at)
