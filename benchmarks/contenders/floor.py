"""The floor as a contender: a bare loop over raw SQL that keeps the same record, batches of 500, nothing around it."""

from __future__ import annotations

import itertools
import json
import os
import time

from benchmarks import floor_postgres, floor_sqlite
from benchmarks.contenders import board, program
from benchmarks.places import ledger
from benchmarks.sides import BATCH, Side, drain

FIRST = 1_000_000
LOOK_EVERY = 0.1
IS_POSTGRES = program.URL.startswith("postgresql:")


def opened() -> Side:
    """On whichever database it is."""
    batch = int(os.environ.get("BENCH_BATCH", BATCH))
    if IS_POSTGRES:
        return floor_postgres.PostgresFloor(program.URL, batch)
    return floor_sqlite.SqliteFloor(program.URL, batch)


def prepare(count: int) -> None:
    """Schema, and the table that jobs write into."""
    (floor_postgres if IS_POSTGRES else floor_sqlite).make(program.URL)
    ledger(program.URL)


def enqueue(count: int, at_once: int) -> program.Answer:
    """Made before the clock runs, since describing a job is no part of the floor."""
    with opened() as side:
        # A second call in the same database comes after the jobs of the first are done.
        jobs = side.jobs(FIRST + side.succeeded(), count)
        began = time.perf_counter()
        for start in range(0, count, at_once):
            side.enqueue(jobs[start : start + at_once])
        return program.rate(count, began)


def pick_up(count: int) -> program.Answer:
    """From another process, with a notification in the same statement."""
    with floor_postgres.PostgresFloor(program.URL) as side:
        numbers = itertools.count(2 * FIRST)

        async def enqueue(t: float) -> None:
            side.tell(next(numbers), json.dumps({"sent": t}))

        return program.pick_up(count, enqueue)


def wait_and_work() -> None:
    """Until stopped: the least that hears of a job, claims it, and has it begun."""
    with floor_postgres.PostgresFloor(program.URL) as side:
        side.listen()
        while True:
            rows = side.claim()
            for row in rows:
                board.mark(json.loads(row[3]).get("sent", 0.0))
            if rows:
                side.finish(rows)
            else:
                side.wait(LOOK_EVERY)


def work(processes: int) -> None:
    """Until a claim comes back empty; where the worker is to wait for jobs, until stopped."""
    if IS_POSTGRES and "BENCH_DRAIN" not in os.environ:
        wait_and_work()
    with opened() as side:
        drain(side, overlap=IS_POSTGRES and "BENCH_BATCH" not in os.environ, took=board.marks)


if __name__ == "__main__":
    program.serve(
        {
            "prepare": prepare,
            "one": lambda count: enqueue(count, 1),
            "bulk": lambda count: enqueue(count, program.BULK),
            "pick-up": pick_up,
            "work": work,
        }
    )
