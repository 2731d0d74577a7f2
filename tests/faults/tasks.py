"""An application whose jobs leave one row each in a ledger, written through the commit boundary."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from detent import Context, Detent, Retry
from tests.processes.tasks import enter

PATIENT = Retry(100, base=0.05, cap=0.5)
INSERT = "INSERT INTO ledger (job_id, attempt) VALUES (:job_id, :attempt)"


def work(ctx: Context, ms: int) -> int:
    """Most of its time before the commit, some after it: a kill may come on either side."""
    time.sleep(ms * 0.7 / 1000)
    with ctx.commit() as tx:
        tx.execute(INSERT, {"job_id": ctx.job_id, "attempt": ctx.attempt})
    time.sleep(ms * 0.3 / 1000)
    return ms


async def work_async(ctx: Context, ms: int) -> int:
    await asyncio.sleep(ms * 0.7 / 1000)
    async with ctx.commit() as tx:
        await tx.execute(INSERT, {"job_id": ctx.job_id, "attempt": ctx.attempt})
    await asyncio.sleep(ms * 0.3 / 1000)
    return ms


def wait_at(gate: str) -> None:
    """Say that we came, wait to be let go."""
    door: Path = enter(gate)
    while not door.exists():
        time.sleep(0.01)


def stop_at(ctx: Context, moment: str, gate: str) -> str:
    """The same row in the ledger; the first attempt stops at one moment of its life, later ones pass."""
    if ctx.attempt > 1:
        moment = ""
    if moment == "started":
        wait_at(gate)
    with ctx.commit() as tx:
        tx.execute(INSERT, {"job_id": ctx.job_id, "attempt": ctx.attempt})
        if moment == "in the block":
            wait_at(gate)
    if moment == "committed":
        wait_at(gate)
    return f"attempt {ctx.attempt}"


def report(ctx: Context) -> str:
    """Without a commit block: what it leaves is its result."""
    return f"attempt {ctx.attempt}"


def make_app(url: str | None = None) -> Detent:
    app = Detent(url)
    for function in (work, work_async, stop_at, report):
        app.task(name=function.__name__, retry=PATIENT)(function)
    return app


app = make_app()
