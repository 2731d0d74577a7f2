"""Procrastinate: psycopg, 20 jobs at once, a pool of 10."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import procrastinate  # type: ignore[import-not-found]

from benchmarks.contenders import board, program

CONCURRENCY = 20
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=program.URL, min_size=2, max_size=10))


async def _noop(t: float) -> None:
    board.mark(t)


noop = app.task(queue="bench", name="noop")(_noop)


def opened(do: Callable[[], Coroutine[Any, Any, program.Answer | None]]) -> program.Answer | None:
    """With its connections open."""

    async def run() -> program.Answer | None:
        async with app.open_async():
            return await do()

    return asyncio.run(run())


async def one(count: int) -> program.Answer:
    """One by one."""
    await noop.defer_async(t=0.0)
    began = time.perf_counter()
    for _ in range(count):
        await noop.defer_async(t=0.0)
    return program.rate(count, began)


async def bulk(count: int) -> program.Answer:
    """A thousand a call."""
    began = time.perf_counter()
    for start in range(0, count, program.BULK):
        await noop.batch_defer_async(*({"t": 0.0} for _ in range(min(program.BULK, count - start))))
    return program.rate(count, began)


async def work() -> None:
    """Until stopped."""
    await app.run_worker_async(queues=["bench"], concurrency=CONCURRENCY, wait=True)


def pick_up(count: int) -> program.Answer:
    """From another process."""
    opening: list[Any] = []

    async def enqueue(t: float) -> None:
        if not opening:
            opening.append(await app.open_async().__aenter__())
        await noop.defer_async(t=t)

    return program.pick_up(count, enqueue)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    program.serve(
        {
            "prepare": lambda count: opened(app.schema_manager.apply_schema_async),
            "one": lambda count: opened(lambda: one(count)),
            "bulk": lambda count: opened(lambda: bulk(count)),
            "work": lambda count: opened(work),
            "pick-up": pick_up,
        }
    )
