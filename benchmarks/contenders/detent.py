"""Detent itself, as its guide has it: the plain API, and a real `detent worker`.

What only the measuring needs is imported where it is used: this module is the application of the workers, too, and what
it imports counts as theirs. With BENCH_BATCH the worker is a bare loop over claim and finish with batches of that size,
to compare small batches.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.contenders import board, program
from benchmarks.stones import TABLE, page_of, parts_of, upsert
from detent import Change, Context, Detent, Page, Partition

app = Detent(program.URL)


@app.task(name="bench.noop")
async def noop(ctx: Context, t: float) -> None:
    """Nothing but a mark."""
    board.mark(t)


@app.task(name="bench.write")
def write(ctx: Context, n: int) -> None:
    """One row through the commit boundary."""
    with ctx.commit() as tx:
        tx.execute("INSERT INTO ledger (n) VALUES (:n)", {"n": n})
    board.mark()


@app.task(name="bench.inside")
async def inside(ctx: Context, t: float, left: int) -> None:
    """Enqueues the next one itself, after a pause in which the worker comes to rest."""
    board.mark(t)
    if left:
        await asyncio.sleep(0.015)
        await app.aio.enqueue(inside.call(t=time.time(), left=left - 1))


def prepare(count: int) -> None:
    """Schema, and the table that jobs write into."""
    from benchmarks.places import ledger, migrate, statement

    migrate(program.URL)
    ledger(program.URL)
    statement(program.URL, TABLE)


def one(count: int) -> program.Answer:
    """One by one."""
    noop.enqueue(t=0.0)
    began = time.perf_counter()
    for _ in range(count):
        noop.enqueue(t=0.0)
    return program.rate(count, began)


def bulk(count: int) -> program.Answer:
    """A thousand a call."""
    app.ids.take(1)
    began = time.perf_counter()
    for start in range(0, count, program.BULK):
        app.enqueue_many(noop.call(t=0.0) for _ in range(min(program.BULK, count - start)))
    return program.rate(count, began)


def bulk_writes(count: int) -> program.Answer:
    """A thousand a call."""
    began = time.perf_counter()
    for start in range(0, count, program.BULK):
        app.enqueue_many(write.call(n=n) for n in range(start, min(start + program.BULK, count)))
    return program.rate(count, began)


def callers(count: int) -> program.Answer:
    """Threads and coroutines in one process, and one caller before and after them."""
    from benchmarks.writer import COROUTINES, THREADS, from_coroutines, from_threads, one_by_one

    calls = [noop.call(t=0.0)]
    app.enqueue(calls[0])
    each_thread, each_coroutine = max(1, 8 * count // THREADS), max(1, 8 * count // COROUTINES)
    alone = one_by_one(app.enqueue, calls, count)
    threads = from_threads(app.enqueue, calls, each_thread)
    coroutines = asyncio.run(from_coroutines(app, calls, each_coroutine))
    alone = (alone + one_by_one(app.enqueue, calls, count)) / 2
    return {"one": alone, "threads": threads, "coroutines": coroutines}


@app.pipeline(name="bench.stones")
@dataclass
class Stones:
    """Records from page to canonical table."""

    count: int

    def plan(self, since: datetime | None) -> list[Partition]:
        """Thirty parts."""
        return parts_of(self.count)

    def page(self, partition: Partition, offset: int) -> Page:
        """A hundred records."""
        return page_of(partition, offset)

    def consolidate(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        """Priced, in one statement."""
        upsert(tx.execute, records, postgres=program.URL.startswith("postgresql:"))


def pipeline(count: int) -> program.Answer:
    """From the start of the run to its watermark."""
    began = time.perf_counter()
    run = app.runs.start(Stones(count)).wait(timeout=600)
    answer = program.rate(count, began)
    if run.state != "completed" or run.counts["consolidated"] != count:
        raise RuntimeError(f"{run!r}: {run.counts} {run.error}")
    return answer


@app.batch(name="bench.change")
@dataclass
class Changes:
    """Targets that are previewed, applied and rolled back, and nothing else."""

    many: int

    def targets(self) -> Iterator[str]:
        """Return the refs of all targets."""
        return (f"target-{number}" for number in range(self.many))

    def preview(self, ref: str) -> Change[int]:
        """Always the same."""
        return Change(before=1, after=2)

    async def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
        """Nothing."""

    async def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
        """Nothing."""


def batch(count: int) -> program.Answer:
    """From each call to the moment that all of it has come about."""
    reached = {}
    run = None
    for name in ("preview", "apply", "roll_back"):
        began = time.perf_counter()
        if run is None:
            run = app.runs.preview(Changes(count))
        else:
            getattr(app, name)(run, actor="bench")
        run.wait(timeout=600)
        reached[name] = program.rate(count, began)["per_second"]
    if run is None or run.counts != {"rolled_back": count}:
        raise RuntimeError(f"{run!r}: {run and run.counts}")
    return reached


def work(processes: int, application: str = "benchmarks.contenders.detent:app") -> None:
    """In place of this process: the command that a user would type."""
    if batch := os.environ.get("BENCH_BATCH"):
        from benchmarks.sides import DetentSide, drain

        with DetentSide(program.URL, int(batch)) as side:
            drain(side, overlap=False, took=board.marks)
        return
    command = str(Path(sys.executable).with_name("detent"))
    options = ["--slots", os.environ["BENCH_SLOTS"], "--processes", str(processes)]
    ending = ["--drain"] if os.environ.get("BENCH_DRAIN") else []
    os.execv(command, [command, "worker", application, *options, *ending])


def pick_up(count: int) -> program.Answer:
    """From another process."""
    return program.pick_up(count, lambda t: app.aio.enqueue(noop.call(t=t)))


def chain(count: int) -> program.Answer:
    """Only the first one from here."""
    inside.enqueue(t=0.0, left=count)
    return {}


if program.THREADS and __name__ != "__main__":
    from benchmarks.contenders import threads

    threads.keep(Path(program.THREADS))

COMMANDS: dict[str, Callable[[int], program.Answer | None]] = {
    "prepare": prepare,
    "one": one,
    "bulk": bulk,
    "callers": callers,
    "bulk-writes": bulk_writes,
    "work": work,
    "pick-up": pick_up,
    "inside": chain,
    "pipeline": pipeline,
    "batch": batch,
}

if __name__ == "__main__":
    program.serve(COMMANDS)
    app.close()
