"""The plan of a run, and its partitions page by page."""

from __future__ import annotations

from typing import Any

import msgspec

from detent.client.client import one
from detent.declare.context import Context
from detent.declare.pipeline import Partition, Pipeline
from detent.declare.signals import Fatal, Snooze, Throttled
from detent.declare.task import Call, Task
from detent.errors import DatabaseError, InvalidInput, LeaseLost, NotFound, essence
from detent.model.pipeline_records import NewPage, NewPartition, PageStored, PartitionRow
from detent.pipeline.ground import ATTEMPTS, Ground, Slice, value_of

__all__ = ["Fetching"]

_ENDED = ("completed", "failed")


class Fetching:
    """What the planning job and the jobs of partitions do."""

    def __init__(self, pipeline: Pipeline, ground: Ground) -> None:
        self._pipeline = pipeline
        self._ground = ground
        self.page_task: Task[..., Any, Any]

    def plan(self, ctx: Context, run_id: int) -> None:
        """Make the plan and fan out. Done again after a lost answer, it changes nothing."""
        run = self._ground.run(run_id)
        if run.state != "created":
            return
        value = value_of(self._pipeline, run)
        since = None if run.since is None else run.since - self._pipeline.options.overlap_by
        found = value.plan(since)
        try:
            parts = self._pipeline.checked_plan(found)
        except InvalidInput as error:
            raise Fatal(f"no plan: {error}") from error
        store, ids = self._ground.store(), self._ground.ids()
        numbers = ids.take(len(parts)) if parts else []
        made = [
            NewPartition(
                n,
                key,
                payload,
                self._ground.job(self._call(run_id, n), run_id, run.tenant, job_id=job_id, attempts_max=ATTEMPTS),
            )
            for n, ((key, payload), job_id) in enumerate(zip(parts, numbers, strict=True), start=1)
        ]
        tolerated = self._pipeline.options.tolerated(len(made))
        one(store.pipeline_fan_out(run_id, ctx.job_id, ctx.attempt, made, tolerated))
        ctx.event("planned", partitions=len(made), since=None if since is None else since.isoformat())

    def _call(self, run_id: int, n: int) -> Call[Any]:
        return self.page_task.call(run_id=run_id, n=n)

    def page(self, ctx: Context, run_id: int, n: int) -> None:
        """Fetch pages, from where the partition stands, until the last one; give way in between."""
        part = self._partition(run_id, n)
        if part.last_page:
            return
        if part.state in _ENDED:
            raise Fatal(f"partition {part.key!r} has {part.state}, and its run goes on without it: start another run")
        most = self._pipeline.options.retry.attempts_max
        if part.tries > most:
            raise Fatal(f"its attempts are used up: {most} in a row ended without a page")
        value = value_of(self._pipeline, self._ground.run(run_id))
        partition = Partition(part.key, msgspec.json.decode(part.payload))
        slice_, offset, stored, records = Slice(self._ground, ctx), part.next_offset, 0, 0
        try:
            while True:
                answer, count = self._one_page(ctx, value, partition, part, offset, stored)
                stored, records, offset = stored + answer.stored, records + count, answer.next_offset
                if answer.last_page:
                    return
                slice_.give_way()
        finally:
            if stored:
                ctx.event("pages stored", pages=stored, records=records, partition=part.key)

    def _partition(self, run_id: int, n: int) -> PartitionRow:
        found = self._ground.store().partition_list(run_id, after_n=n - 1, limit=1)
        if not found or found[0].n != n:
            raise NotFound("partition", f"{run_id}/{n}")
        return found[0]

    def _one_page(
        self, ctx: Context, value: Any, partition: Partition, part: PartitionRow, offset: str, stored: int
    ) -> tuple[PageStored, int]:
        if part.pages + stored >= self._ground.settings.pages_max:
            most = self._ground.settings.pages_max
            raise Fatal(f"partition {part.key!r} has more than {most} pages (pages_max)")
        found = self._asked(ctx, value, partition, part, offset, stored)
        try:
            records, following = self._pipeline.checked_page(found, offset)
        except InvalidInput as error:
            raise Fatal(f"no page at offset {offset[:80]}: {error}") from error
        item = NewPage(
            run_id=part.run_id,
            n=part.n,
            job_id=ctx.job_id,
            attempt=ctx.attempt,
            offset=offset,
            next_offset=following,
            keys=tuple(records),
            datas=tuple(records.values()),
        )
        return one(self._ground.store().page_store(item)), len(records)

    def _asked(
        self, ctx: Context, value: Any, partition: Partition, part: PartitionRow, offset: str, stored: int
    ) -> object:
        """What the user's function says. Where it raises, attempts are counted since the last page: an attempt that
        stored any costs nothing, and the last one that may be made is the last."""
        retry = self._pipeline.options.retry
        try:
            found: object = value.page(partition, msgspec.json.decode(offset))
            return found
        except (Snooze, Throttled, Fatal, LeaseLost, DatabaseError):
            raise
        except Exception as error:
            if stored and retry.covers(error):
                ctx.event(f"the page at offset {offset[:80]} failed: {essence(repr(error))}", level="warning")
                raise Snooze(retry.delay(1, self._ground.ids().random())) from error
            if part.tries >= retry.attempts_max:
                raise Fatal(f"partition {part.key!r} failed at offset {offset[:80]}, attempts used up") from error
            raise
