"""Huey on SQLite with fsync, two threads, results off, polling every 5 to 10 ms. It deletes a job before it runs it."""

from __future__ import annotations

import logging
import time

from huey import SqliteHuey  # type: ignore[import-not-found]

from benchmarks.contenders import board, program

huey = SqliteHuey(filename=program.URL.removeprefix("sqlite:///"), fsync=True, results=False)


def _noop(t: float) -> None:
    board.mark(t)


def _inside(t: float, left: int) -> None:
    board.mark(t)
    if left:
        time.sleep(0.015)
        inside(time.time(), left - 1)


noop = huey.task(name="noop")(_noop)
inside = huey.task(name="inside")(_inside)


def one(count: int) -> program.Answer:
    """One by one; it has no call for many."""
    noop(0.0)
    began = time.perf_counter()
    for _ in range(count):
        noop(0.0)
    return program.rate(count, began)


def work(processes: int) -> None:
    """Until stopped."""
    huey.create_consumer(
        workers=2,
        worker_type="thread",
        initial_delay=0.005,
        backoff=1.0,
        max_delay=0.01,
        periodic=False,
        check_worker_health=False,
    ).run()


def pick_up(count: int) -> program.Answer:
    """From another process."""

    async def enqueue(t: float) -> None:
        noop(t)

    return program.pick_up(count, enqueue)


def chain(count: int) -> None:
    """Only the first one from here."""
    inside(0.0, count)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    program.serve(
        {
            "prepare": lambda count: None,
            "one": one,
            "bulk": one,
            "work": work,
            "pick-up": pick_up,
            "inside": chain,
        }
    )
