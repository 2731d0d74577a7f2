"""The command line that all contenders in Python share, and the loops that are the same for all of them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from benchmarks.contenders.board import Board

__all__ = [
    "BULK",
    "IS_ASYNC",
    "STEPS",
    "THREADS",
    "URL",
    "WORK",
    "Answer",
    "pick_up",
    "rate",
    "serve",
    "wait_for_marks",
]

BULK = 1000
"""Jobs in one call for many."""
URL = os.environ.get("BENCH_URL", "")
THREADS = os.environ.get("BENCH_THREADS", "")
"""Where a worker is to write down what its threads use, if anywhere."""
WORK = os.environ.get("BENCH_WORK", "")
"""Which work of workflows it is, for programs that do them in different ways."""
STEPS = int(os.environ.get("BENCH_STEPS", "1"))
"""Steps of each workflow."""
IS_ASYNC = "BENCH_ASYNC" in os.environ
"""Whether the function of a workflow is async, where both are measured."""
PATIENCE = 30.0
START = 120.0
"""Seconds within which a worker that is started has to begin, on a machine that has other work."""
SETTLE = 0.5
"""Seconds for what begins to wait, so that it does wait."""

Answer = dict[str, float]


def serve(commands: Mapping[str, Callable[[int], Answer | None]]) -> None:
    """Do what the command line says, and answer on standard output."""
    answer = commands[sys.argv[1]](int(sys.argv[2]))
    sys.stdout.write(json.dumps(answer or {}) + "\n")


def rate(count: int, began: float) -> Answer:
    """Return the number per second since `began`, by the monotonic clock."""
    return {"per_second": count / (time.perf_counter() - began)}


def pick_up(count: int, enqueue: Callable[[float], Awaitable[object]]) -> Answer:
    """Light load: one job at a time, each into a worker that has nothing to do. The body takes the sample."""
    board = Board(Path(os.environ["BENCH_BOARD"]))

    async def loop() -> None:
        before = board.total()
        for number in range(count):
            await enqueue(time.time())
            until = time.monotonic() + PATIENCE
            while board.total() <= before + number:
                if time.monotonic() > until:
                    raise TimeoutError(f"job {number} was not picked up within {PATIENCE:g} s")
                await asyncio.sleep(0.001)
            await asyncio.sleep(random.uniform(0.005, 0.025))

    asyncio.run(loop())
    return {}


def wait_for_marks(count: int) -> None:
    """Until as many bodies have begun, and a moment longer."""
    board = Board(Path(os.environ["BENCH_BOARD"]))
    until = time.monotonic() + START
    while board.total() < count:
        if time.monotonic() > until:
            raise TimeoutError(f"{board.total()} of {count} have begun within {START:g} s")
        time.sleep(0.01)
    time.sleep(SETTLE)
