"""persist-queue: its acknowledged queue in SQLite, committed with every call."""

from __future__ import annotations

import time
from pathlib import Path

import persistqueue  # type: ignore[import-not-found]

from benchmarks.contenders import board, program

queue = persistqueue.SQLiteAckQueue(
    str(Path(program.URL.removeprefix("sqlite:///")).parent), auto_commit=True, multithreading=True
)


def one(count: int) -> program.Answer:
    """One by one; it has no call for many."""
    queue.put(0.0)
    began = time.perf_counter()
    for _ in range(count):
        queue.put(0.0)
    return program.rate(count, began)


def work(processes: int) -> None:
    """Until stopped: get, run, acknowledge."""
    while True:
        try:
            item = queue.get(block=False)
        except persistqueue.Empty:
            time.sleep(0.005)
            continue
        board.mark(item)
        queue.ack(item)


if __name__ == "__main__":
    program.serve({"prepare": lambda count: None, "one": one, "bulk": one, "work": work})
