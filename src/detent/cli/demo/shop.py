"""The demo's application: async tasks, tasks in threads, a shell command, and a task that kills its process.

Most write one line into the ledger when they commit. The ledger has no unique index on purpose: if a job were done
twice, there would be two lines.
"""

from __future__ import annotations

import asyncio
import os
import signal

from detent.app.detent import Detent
from detent.declare.context import Context
from detent.model.backoff import Retry
from detent.model.clock import SystemClock
from detent.worker.shell_task import shell

__all__ = ["LEDGER", "app", "charge", "fetch", "photo", "poison", "receipt", "report"]

LEDGER = "CREATE TABLE ledger (job_id INTEGER NOT NULL, task TEXT NOT NULL)"

# The demo sets DETENT_DATABASE_URL.
app = Detent()

_WRITE = "INSERT INTO ledger (job_id, task) VALUES (:job, :task)"
_PATIENT = Retry(20, base=0.5, cap=2.0)


@app.task(name="photo", queue="photos", retry=_PATIENT)
def photo(ctx: Context, number: int) -> str:
    """Run in a thread for a while."""
    SystemClock().sleep(0.2 + number % 5 / 10)
    with ctx.commit() as tx:
        tx.execute(_WRITE, {"job": ctx.job_id, "task": "photo"})
    return f"photo {number} resized"


@app.task(name="charge", queue="payments", retry=_PATIENT)
def charge(ctx: Context, order: int) -> None:
    """Write the line and enqueue the receipt in one transaction."""
    SystemClock().sleep(0.1)
    with ctx.commit() as tx:
        tx.execute(_WRITE, {"job": ctx.job_id, "task": "charge"})
        tx.intend(receipt.call(order=order))


@app.task(name="receipt", queue="mail", retry=_PATIENT)
async def receipt(ctx: Context, order: int) -> None:
    """Run on the event loop. Only `charge` enqueues it."""
    ctx.event("sending", order=order)
    await asyncio.sleep(0.1)
    async with ctx.commit() as tx:
        await tx.execute(_WRITE, {"job": ctx.job_id, "task": "receipt"})


@app.task(name="fetch", queue="web", retry=_PATIENT)
async def fetch(ctx: Context, number: int) -> None:
    """Fail twice in every fourth job, as if a server were down, and back off."""
    await asyncio.sleep(0.1)
    if number % 4 == 0 and ctx.attempt <= 2:
        raise ConnectionError("the server does not answer")
    async with ctx.commit() as tx:
        await tx.execute(_WRITE, {"job": ctx.job_id, "task": "fetch"})


report = shell(
    app, "report", ["sh", "-c", "for part in 1 2 3; do echo part $part; done"], queue="reports", retry=_PATIENT
)
"""A shell command. Its output becomes events of the job."""


@app.task(name="poison", queue="danger", retry=Retry(2, base=0.5), process=True)
def poison(ctx: Context) -> None:
    """Kill the process it runs in, every time. It has its own process, so other jobs are not affected."""
    os.kill(os.getpid(), signal.SIGKILL)
