"""The application of the soak. What its jobs do leaves rows and lines with consecutive numbers, so that a lost or
doubled effect can be seen at the end without a list of all jobs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from detent import Change, Context, Detent, Page, Partition, Retry
from detent.declare.workflow_context import WorkflowContext

__all__ = ["FOLDER", "LEAK", "MIRRORED", "TABLES", "Mirror", "Reprice", "app", "started_file"]

FOLDER = "SOAK_FOLDER"
"""The environment variable with the directory for lines about started jobs."""
LEAK = "SOAK_LEAK"
"""The environment variable with the bytes that each plain job leaves behind in its process: a leak, to be found."""
MIRRORED = 120
"""Records of the pipeline."""
TABLES = (
    "CREATE TABLE soak_effect (kind text NOT NULL, number bigint NOT NULL)",
    "CREATE TABLE soak_mirror (id text PRIMARY KEY, times bigint NOT NULL)",
)
_EFFECT = "INSERT INTO soak_effect (kind, number) VALUES (:kind, :number)"
_PATIENT = Retry(100, base=0.1, cap=2.0)
_leaked: list[bytearray] = []


def started_file(folder: Path) -> Path:
    """Return the file with a line for each start of a plain job: its number, and the milliseconds since it was sent."""
    return folder / "started.txt"


app = Detent()


@app.task(name="plain", retry=_PATIENT)
def plain(ctx: Context, number: int, sent_at: float) -> int:
    """Note that it was started."""
    line = f"{number} {max(0.0, time.time() - sent_at) * 1000:.1f}\n".encode()
    file = os.open(started_file(Path(os.environ[FOLDER])), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line)
    finally:
        os.close(file)
    if leak := int(os.environ.get(LEAK, "0")):
        _leaked.append(bytearray(os.urandom(leak)))
    return number


@app.task(name="commit", retry=_PATIENT)
async def commit(ctx: Context, number: int) -> int:
    """Leave a row."""
    await asyncio.sleep(0.005)
    async with ctx.commit() as tx:
        await tx.execute(_EFFECT, {"kind": "commit", "number": number})
    return number


@app.task(name="posted", retry=_PATIENT)
def posted(ctx: Context, number: int) -> int:
    """Leave a row; it is sent over HTTP."""
    with ctx.commit() as tx:
        tx.execute(_EFFECT, {"kind": "posted", "number": number})
    return number


@app.task(name="tick", retry=_PATIENT)
def tick(ctx: Context) -> None:
    """Leave a row; a schedule sends it."""
    with ctx.commit() as tx:
        tx.execute(_EFFECT, {"kind": "tick", "number": ctx.job_id})


@app.workflow(name="order", retry=_PATIENT, linger=0)
def order(ctx: WorkflowContext, number: int) -> int:
    """Leave a row, sleep, wait for a signal, and leave another."""
    ctx.transact("begin", _effect, "order begun", number)
    ctx.sleep(1.0)
    ctx.wait_for("go", int)
    return ctx.transact("end", _effect, "order ended", number)


def _effect(tx: Any, kind: str, number: int) -> int:
    tx.execute(_EFFECT, {"kind": kind, "number": number})
    return number


@app.batch(name="reprice", retry=_PATIENT)
@dataclass
class Reprice:
    """A batch run over targets with consecutive numbers."""

    first: int
    many: int

    def targets(self) -> Iterator[str]:
        """Return the numbers as text."""
        return (str(self.first + n) for n in range(self.many))

    def preview(self, ref: str) -> Change[int]:
        """Change its price to its number."""
        return Change(before=0, after=int(ref))

    def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
        """Leave a row."""
        with ctx.commit() as tx:
            tx.execute(_EFFECT, {"kind": "target", "number": int(ref)})

    def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
        """Leave another row."""
        with ctx.commit() as tx:
            tx.execute(_EFFECT, {"kind": "reverted", "number": int(ref)})


@app.pipeline(name="mirror", watermark="mirror", retry=_PATIENT)
@dataclass
class Mirror:
    """A pipeline that fetches all records in each run, and counts how often each was written."""

    page_size: int = 20

    def plan(self, since: datetime | None) -> list[Partition]:
        """Return three partitions."""
        each = MIRRORED // 3
        return [Partition(f"p{n}", {"first": n * each, "end": (n + 1) * each}) for n in range(3)]

    def page(self, partition: Partition, offset: int) -> Page:
        """Return a page of records."""
        first, end = partition.payload["first"] + offset, partition.payload["end"]
        last = min(first + self.page_size, end)
        records = [(f"r{n:04}", {"n": n}) for n in range(first, last)]
        return Page(records=records, next=offset + self.page_size if last < end else None)

    def consolidate(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        """Count a write of each."""
        for key, _ in records:
            tx.execute(
                "INSERT INTO soak_mirror (id, times) VALUES (:id, 1)"
                " ON CONFLICT (id) DO UPDATE SET times = soak_mirror.times + 1",
                {"id": key},
            )
