"""Absurd, on PostgreSQL: its schema comes with `absurdctl`. A worker polls every 20 ms instead of every 250.

Its plain worker runs one task after the other on one connection; with more at once they are threads on that connection.
The async worker is the better one if many tasks run at once.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import psycopg
from absurd_sdk import Absurd, AsyncAbsurd  # type: ignore[import-not-found]
from absurdctl import BUNDLED_SCHEMA_SQL  # type: ignore[import-not-found]

from benchmarks.contenders import board, program

QUEUE, CHILDREN = "bench", "children"
POLLING = 0.02
BATCH = 100
SLOTS = int(os.environ.get("BENCH_SLOTS", "1"))


def nothing() -> None:
    """The body of a step."""


async def nothing_async() -> None:
    """The body of a step."""


async def tick() -> None:
    """The body of a step that counts."""
    board.mark()


def steps(given: dict[str, Any], ctx: Any) -> None:
    """Measures each of its steps."""
    times = []
    for _ in range(given["count"]):
        began = time.perf_counter()
        ctx.step("noop", nothing)
        times.append(time.perf_counter() - began)
    board.measured(times)
    board.mark()


async def steps_async(given: dict[str, Any], ctx: Any) -> None:
    """The same in an async function."""
    times = []
    for _ in range(given["count"]):
        began = time.perf_counter()
        await ctx.step("noop", nothing_async)
        times.append(time.perf_counter() - began)
    board.measured(times)
    board.mark()


async def crowd(given: dict[str, Any], ctx: Any) -> None:
    """Each step counts."""
    for _ in range(given["count"]):
        await ctx.step("noop", tick)


def whole(given: dict[str, Any], ctx: Any) -> None:
    """The workflow counts."""
    board.mark()
    for _ in range(given["count"]):
        ctx.step("noop", nothing)


def parked(given: dict[str, Any], ctx: Any) -> None:
    """Counts when it begins, and when its event has come, with the time at which that was emitted."""
    ctx.step("begin", board.mark)
    board.mark(ctx.await_event(f"go {given['number']}"))


def sleeper(given: dict[str, Any], ctx: Any) -> None:
    """Counts when it begins, and when it goes on."""
    ctx.step("begin", board.mark)
    ctx.sleep_until("sleep", datetime.fromtimestamp(given["until"], UTC))
    board.mark(given["until"])


def child(given: dict[str, Any], ctx: Any) -> None:
    """Nothing at all."""


def parent(given: dict[str, Any], ctx: Any) -> None:
    """Says how long it took from the first child's spawn to the end of all. Children need a queue of their own."""
    client = Absurd(program.URL, queue_name=CHILDREN)
    began = ctx.step("begin", time.time)

    def spawn() -> list[str]:
        return [str(client.spawn("child", {}, queue=CHILDREN)["task_id"]) for _ in range(given["count"])]

    for one in ctx.step("spawn", spawn):
        ctx.await_task_result(one, queue_name=CHILDREN)
    board.mark(began)


PLAIN_TASKS = {"steps": steps, "whole": whole, "parked": parked, "sleeper": sleeper, "parent": parent}
ASYNC_TASKS = {"steps_async": steps_async, "crowd": crowd}


def prepare(count: int) -> None:
    """Its schema, and a queue."""
    with psycopg.connect(program.URL, autocommit=True) as connection:
        connection.execute(BUNDLED_SCHEMA_SQL)
    client = Absurd(program.URL)
    client.create_queue(QUEUE)
    client.create_queue(CHILDREN)
    client.close()


def start(name: str, count: int, given: dict[str, Any]) -> None:
    """As many tasks, a thousand in each transaction: there is no call for many."""
    with psycopg.connect(program.URL) as connection:
        client = Absurd(connection, queue_name=QUEUE)
        for number in range(count):
            client.spawn(name, {**given, "number": number}, queue=QUEUE)
            if number % program.BULK == program.BULK - 1:
                connection.commit()


def signals(count: int) -> program.Answer:
    """As many tasks, and an event for each when it waits."""
    start("parked", count, {})
    program.wait_for_marks(count)
    client = Absurd(program.URL, queue_name=QUEUE)
    numbers = iter(range(count))

    async def send(t: float) -> None:
        client.emit_event(f"go {next(numbers)}", t)

    return program.pick_up(count, send)


def work(processes: int) -> None:
    """Until stopped: the async worker for tasks that are async, and the plain one for others."""
    if program.WORK == "crowd" or program.IS_ASYNC:
        asyncio.run(_work_async())
    if program.WORK == "fan-out":
        threading.Thread(target=_work_plainly, args=(CHILDREN, {"child": child}), daemon=True).start()
    _work_plainly(QUEUE, PLAIN_TASKS)


def _work_plainly(queue: str, tasks: Mapping[str, Callable[[dict[str, Any], Any], None]]) -> None:
    client = Absurd(program.URL, queue_name=queue)
    for name, function in tasks.items():
        client.register_task(name=name)(function)
    client.start_worker(concurrency=1, batch_size=BATCH, poll_interval=POLLING)


async def _work_async() -> None:
    client = AsyncAbsurd(program.URL, queue_name=QUEUE)
    for name, function in ASYNC_TASKS.items():
        client.register_task(name=name)(function)
    await client.start_worker(concurrency=SLOTS, batch_size=SLOTS, poll_interval=POLLING)


if __name__ == "__main__":
    program.serve(
        {
            "prepare": prepare,
            "steps": lambda count: start("steps_async" if program.IS_ASYNC else "steps", 1, {"count": count}),
            "crowd": lambda count: start("crowd", count, {"count": program.STEPS}),
            "whole": lambda count: start("whole", count, {"count": program.STEPS}),
            "signals": signals,
            "sleepers": lambda count: start("sleeper", count, {"until": float(os.environ["BENCH_UNTIL"])}),
            "fan-out": lambda count: start("parent", 1, {"count": count}),
            "work": work,
        }
    )
