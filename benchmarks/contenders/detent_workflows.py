"""Detent's workflows, as its guide has them, in the application of the other works."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from benchmarks.contenders import board, detent, program
from benchmarks.contenders.detent import app
from detent import AsyncWorkflowContext, Call, Context, Tx, WorkflowContext

BULK = program.BULK
STEPS = program.STEPS


def nothing() -> None:
    """The body of a step."""


async def nothing_async() -> None:
    """The body of a step."""


async def tick() -> None:
    """The body of a step that counts."""
    board.mark()


@app.workflow(name="bench.steps")
def steps(ctx: WorkflowContext, count: int) -> None:
    """Measures each of its steps."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        ctx.step("noop", nothing)
        times.append(time.perf_counter() - began)
    board.measured(times)
    board.mark()


@app.workflow(name="bench.steps_async")
async def steps_async(ctx: AsyncWorkflowContext, count: int) -> None:
    """The same in an async function."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await ctx.step("noop", nothing_async)
        times.append(time.perf_counter() - began)
    board.measured(times)
    board.mark()


@app.workflow(name="bench.crowd")
async def crowd(ctx: AsyncWorkflowContext, count: int) -> None:
    """Each step counts."""
    for _ in range(count):
        await ctx.step("noop", tick)


@app.workflow(name="bench.whole")
async def whole(ctx: AsyncWorkflowContext, count: int) -> None:
    """The workflow counts."""
    board.mark()
    for _ in range(count):
        await ctx.step("noop", nothing_async)


def insert(tx: Tx, n: int) -> None:
    """The body of a step that writes a row."""
    tx.execute("INSERT INTO ledger (n) VALUES (:n)", {"n": n})


@app.workflow(name="bench.transact")
def transact(ctx: WorkflowContext, count: int) -> None:
    """Each step writes a row and counts."""
    for number in range(count):
        ctx.transact("write", insert, number)
        board.mark()


@app.workflow(name="bench.parked")
async def parked(ctx: AsyncWorkflowContext) -> None:
    """Counts when it begins, and when its signal has come, with the time at which that was sent."""
    if ctx.attempt == 1:
        board.mark()
    board.mark(await ctx.wait_for("go", float))


@app.workflow(name="bench.sleeper")
async def sleeper(ctx: AsyncWorkflowContext, until: float, is_sampled: bool) -> None:
    """Counts when it begins, and when it goes on; some say how late that is."""
    if ctx.attempt == 1:
        board.mark()
    await ctx.sleep_until(datetime.fromtimestamp(until, UTC))
    board.mark(until if is_sampled else 0.0)


@app.task(name="bench.child")
async def child(ctx: Context) -> None:
    """Nothing at all."""


@app.workflow(name="bench.parent")
def parent(ctx: WorkflowContext, count: int) -> None:
    """Says how long it took from the first child's spawn to the end of all."""
    began = ctx.step("begin", time.time)
    done = ctx.spawn_many("children", (child.call() for _ in range(count))).join()
    if done.succeeded != count:
        raise RuntimeError(f"{done.succeeded} of {count} children succeeded")
    board.mark(began)


@app.workflow(name="bench.long")
def long(ctx: WorkflowContext, count: int) -> None:
    """Measures each of its steps, waits for a signal, and goes on behind all of them."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        ctx.step("noop", nothing)
        times.append(time.perf_counter() - began)
    if ctx.attempt == 1:
        board.measured(times)
        board.mark()
    ctx.wait_for("go")
    ctx.step("after", nothing)
    board.mark()


def enqueued(calls: Iterator[Call[None]]) -> list[int]:
    """The ids of these, sent a thousand a call."""
    ids: list[int] = []
    while portion := list(islice(calls, BULK)):
        ids += [job.id for job in app.enqueue_many(portion)]
    return ids


def start_steps(count: int) -> None:
    """One workflow."""
    kind = steps_async if program.IS_ASYNC else steps
    kind.enqueue(count=count)


def start_crowd(count: int) -> None:
    """As many workflows as are to run at once."""
    enqueued(crowd.call(count=STEPS) for _ in range(count))


def start_whole(count: int) -> None:
    """As many workflows."""
    enqueued(whole.call(count=STEPS) for _ in range(count))


def start_transact(count: int) -> None:
    """As many workflows."""
    enqueued(transact.call(count=STEPS) for _ in range(count))


def signals(count: int) -> program.Answer:
    """As many workflows, and a signal for each when it is parked."""
    ids = iter(enqueued(parked.call() for _ in range(count)))
    program.wait_for_marks(count)

    async def send(t: float) -> None:
        await app.aio.workflows.signal(next(ids), "go", t)

    return program.pick_up(count, send)


def start_sleepers(count: int) -> None:
    """As many workflows that sleep until BENCH_UNTIL. One of a hundred says when it went on."""
    until = float(os.environ["BENCH_UNTIL"])
    enqueued(sleeper.call(until=until, is_sampled=number % 100 == 0) for number in range(count))


def start_parent(count: int) -> None:
    """One workflow with as many children."""
    parent.enqueue(count=count)


def start_long(count: int) -> program.Answer:
    """One workflow; the answer has its id."""
    return {"id": long.enqueue(count=count).id}


def wake_long(job_id: int) -> None:
    """Let it go on."""
    app.workflows.signal(job_id, "go", None)


if __name__ == "__main__":
    program.serve(
        {
            **detent.COMMANDS,
            "steps": start_steps,
            "crowd": start_crowd,
            "whole": start_whole,
            "transact": start_transact,
            "signals": signals,
            "sleepers": start_sleepers,
            "fan-out": start_parent,
            "long": start_long,
            "wake-long": wake_long,
            "work": lambda processes: detent.work(processes, "benchmarks.contenders.detent_workflows:app"),
        }
    )
    app.close()
