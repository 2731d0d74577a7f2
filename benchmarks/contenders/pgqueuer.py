"""PgQueuer as its documentation has it for throughput: asyncpg, uvloop, batches of 500."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop  # type: ignore[import-not-found]
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

from benchmarks.contenders import board, program

BATCH = int(os.environ.get("BENCH_BATCH", "500"))
NAME = "noop"


async def noop(job: Any) -> None:
    """Nothing but a mark."""
    board.mark(float(job.payload))


async def connected() -> tuple[Any, Any]:
    """One connection, and its queries."""
    connection = await asyncpg.connect(program.URL)
    return connection, Queries(AsyncpgDriver(connection))


async def prepare() -> None:
    """Its schema."""
    _, queries = await connected()
    await queries.install()


async def one(count: int) -> program.Answer:
    """One by one."""
    _, queries = await connected()
    await queries.enqueue(NAME, b"0")
    began = time.perf_counter()
    for _ in range(count):
        await queries.enqueue(NAME, b"0")
    return program.rate(count, began)


async def bulk(count: int) -> program.Answer:
    """A thousand a call."""
    _, queries = await connected()
    began = time.perf_counter()
    for start in range(0, count, program.BULK):
        size = min(program.BULK, count - start)
        await queries.enqueue([NAME] * size, [b"0"] * size, [0] * size)
    return program.rate(count, began)


async def work() -> None:
    """Until stopped."""
    connection, _ = await connected()
    queuer = PgQueuer.from_asyncpg_connection(connection)
    queuer.entrypoint(NAME)(noop)
    await queuer.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=30))


def pick_up(count: int) -> program.Answer:
    """From another process."""
    found: list[Any] = []

    async def enqueue(t: float) -> None:
        if not found:
            found.extend(await connected())
        await found[1].enqueue(NAME, repr(t).encode())

    return program.pick_up(count, enqueue)


if __name__ == "__main__":
    uvloop.install()
    logging.disable(logging.WARNING)
    program.serve(
        {
            "prepare": lambda count: asyncio.run(prepare()),
            "one": lambda count: asyncio.run(one(count)),
            "bulk": lambda count: asyncio.run(bulk(count)),
            "work": lambda count: asyncio.run(work()),
            "pick-up": pick_up,
        }
    )
