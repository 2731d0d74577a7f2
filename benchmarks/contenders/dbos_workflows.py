"""DBOS's workflows, on both databases: queued, polled every 50 ms, with decorated steps and the data source's
transactions. Async functions where many run at once; plain ones in threads otherwise."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator

import sqlalchemy
from dbos import DBOS, DBOSClient  # type: ignore[import-not-found]

from benchmarks.contenders import board, dbos, program
from benchmarks.contenders.dbos import QUEUE, found

CHILDREN = "children"
LONG = 1e6


def _nothing() -> None:
    """The body of a step."""


async def _nothing_async() -> None:
    """The body of a step."""


async def _tick() -> None:
    board.mark()


nothing = DBOS.step(name="nothing")(_nothing)
nothing_async = DBOS.step(name="nothing_async")(_nothing_async)
tick = DBOS.step(name="tick")(_tick)


def _steps(count: int) -> None:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        nothing()
        times.append(time.perf_counter() - began)
    board.measured(times)
    board.mark()


async def _steps_async(count: int) -> None:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await nothing_async()
        times.append(time.perf_counter() - began)
    board.measured(times)
    board.mark()


async def _crowd(count: int) -> None:
    for _ in range(count):
        await tick()


async def _whole(count: int) -> None:
    board.mark()
    for _ in range(count):
        await nothing_async()


def _transact(count: int) -> None:
    for number in range(count):
        found["insert"](number)
        board.mark()


async def _parked() -> None:
    board.mark()
    board.mark(await DBOS.recv_async("go", timeout_seconds=LONG))


async def _sleeper(seconds: float) -> None:
    board.mark()
    await DBOS.sleep_async(seconds)


async def _child() -> None:
    """Nothing at all."""


async def _parent(count: int) -> None:
    began = time.time()
    handles = [await DBOS.enqueue_workflow_async(QUEUE, child) for _ in range(count)]
    await asyncio.gather(*(handle.get_result() for handle in handles))
    board.mark(began)


steps = DBOS.workflow(name="steps")(_steps)
steps_async = DBOS.workflow(name="steps_async")(_steps_async)
crowd = DBOS.workflow(name="crowd")(_crowd)
whole = DBOS.workflow(name="whole")(_whole)
transact = DBOS.workflow(name="transact")(_transact)
parked = DBOS.workflow(name="parked")(_parked)
sleeper = DBOS.workflow(name="sleeper")(_sleeper)
child = DBOS.workflow(name="child")(_child)
parent = DBOS.workflow(name="parent")(_parent)


def enqueued(name: str, count: int, *given: object) -> Iterator[str]:
    """The ids of workflows, each with these arguments; a thousand in each transaction of the caller."""
    client = DBOSClient(system_database_url=program.URL)
    engine = sqlalchemy.create_engine(program.URL.replace("postgresql://", "postgresql+psycopg://"))
    for start in range(0, count, program.BULK):
        numbers = range(start, min(start + program.BULK, count))
        if program.URL.startswith("sqlite:"):
            for number in numbers:
                client.enqueue(_options(name, number), *given)
        else:
            with engine.begin() as connection:
                for number in numbers:
                    client.enqueue_in_transaction(connection, _options(name, number), *given)
        yield from (f"{name}-{number}" for number in numbers)
    client.destroy()


def _options(name: str, number: int) -> dict[str, str]:
    return {"queue_name": QUEUE, "workflow_name": name, "workflow_id": f"{name}-{number}"}


def start(name: str, count: int, *given: object) -> None:
    """As many workflows."""
    for _ in enqueued(name, count, *given):
        pass


def signals(count: int) -> program.Answer:
    """As many workflows, and a message for each when it waits."""
    ids = iter(list(enqueued("parked", count)))
    program.wait_for_marks(count)
    client = DBOSClient(system_database_url=program.URL)

    async def send(t: float) -> None:
        client.send(next(ids), t, "go")

    return program.pick_up(count, send)


if __name__ == "__main__":
    program.serve(
        {
            "prepare": dbos.prepare,
            "steps": lambda count: start("steps_async" if program.IS_ASYNC else "steps", 1, count),
            "crowd": lambda count: start("crowd", count, program.STEPS),
            "whole": lambda count: start("whole", count, program.STEPS),
            "transact": lambda count: start("transact", count, program.STEPS),
            "signals": signals,
            "sleepers": lambda count: start("sleeper", count, float(os.environ["BENCH_UNTIL"]) - time.time()),
            "fan-out": lambda count: start("parent", 1, count),
            "work": dbos.work,
        }
    )
