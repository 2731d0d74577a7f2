"""The jobs that fetch: one that plans the run, and one per partition that fetches its pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import msgspec

from detent.client.engine import EngineRef
from detent.client.job_verbs import unwrap
from detent.client.method_caller import Caller, caller_for
from detent.declare.context import Context
from detent.declare.pipeline import Partition, Pipeline
from detent.declare.signals import Fatal, Snooze, Throttled
from detent.declare.task import Call, Task
from detent.errors import DatabaseError, DetentError, InvalidInput, LeaseLost, NotFound, essence
from detent.model.pipeline_records import ELSEWHERE, NewPage, NewPartition, PageStored, PartitionRow, PipelineRunRow
from detent.model.records import Moved
from detent.pipeline.run_jobs import UNLIMITED_ATTEMPTS, TimeSlice, new_run_job, read_run, value_of
from detent.pipeline.transaction import open_transaction
from detent.store.contract import Verbs
from detent.views.pipeline_progress import cause

__all__ = ["Fetcher"]

_ENDED = ("completed", "failed")


class Fetcher:
    """The functions of the plan task and of the page task."""

    def __init__(self, pipeline: Pipeline, engine: EngineRef) -> None:
        self._pipeline = pipeline
        self._engine = engine
        self.page_task: Task[..., Any, Any]
        self.plan_caller: Caller = caller_for(pipeline.method("plan"))
        self.page_caller: Caller = caller_for(pipeline.method("page"), pipeline.method("stage"))

    async def plan(self, ctx: Context, run_id: int) -> None:
        """Make the plan and fan out. A repetition after a lost answer changes nothing."""
        caller = self.plan_caller
        run = await caller.query(read_run, self._engine, run_id)
        if run.state != "created":
            return
        value = value_of(self._pipeline, run)
        since = None if run.since is None else run.since - self._pipeline.options.overlap_by
        parts = await self._parts(value, since)
        await caller.query(self._fan_out, ctx, run, parts)
        ctx.event("planned", partitions=len(parts), since=None if since is None else since.isoformat())

    async def _parts(self, value: Any, since: datetime | None) -> list[tuple[str, str]]:
        found = await self.plan_caller.call(value.plan, since)
        if hasattr(found, "__aiter__"):
            listed: list[object] = []
            async for part in found:
                listed.append(part)
                if len(listed) > self._engine.settings.partitions_max:
                    break  # too many: refused below
            found = listed
        try:
            return self._pipeline.checked_plan(found)
        except InvalidInput as error:
            raise Fatal(f"plan() returned an invalid plan: {error}") from error

    def _fan_out(self, ctx: Context, run: PipelineRunRow, parts: list[tuple[str, str]]) -> None:
        numbers = self._engine.ids().take(len(parts)) if parts else []
        made = [
            NewPartition(
                n,
                key,
                payload,
                new_run_job(
                    self._engine,
                    self._call(run.id, n),
                    run.id,
                    run.tenant,
                    job_id=job_id,
                    attempts_max=UNLIMITED_ATTEMPTS,
                ),
            )
            for n, ((key, payload), job_id) in enumerate(zip(parts, numbers, strict=True), start=1)
        ]
        tolerated = self._pipeline.options.tolerated(len(made))
        unwrap(self._engine.store().pipeline_fan_out(run.id, ctx.job_id, ctx.attempt, made, tolerated))

    def _call(self, run_id: int, n: int) -> Call[Any]:
        return self.page_task.call(run_id=run_id, n=n)

    async def page(self, ctx: Context, run_id: int, n: int) -> None:
        """Fetch the remaining pages of a partition, and give way to other jobs in between."""
        part = await self.page_caller.query(self._partition, run_id, n)
        if part.last_page:
            return
        if part.state in _ENDED:
            raise Fatal(f"Partition {part.key!r} has {part.state}, and its run goes on without it. Start another run.")
        most = self._pipeline.options.retry.attempts_max
        if part.tries > most:
            last = await self.page_caller.query(self._last_end, ctx)
            raise Fatal(f"Its attempts are used up: {most} in a row ended without a page, {last}")
        value = value_of(self._pipeline, await self.page_caller.query(read_run, self._engine, run_id))
        partition = Partition(part.key, msgspec.json.decode(part.payload))
        slice_, offset, stored, records = TimeSlice(self._engine, ctx), part.next_offset, 0, 0
        try:
            while True:
                answer, count = await self._one_page(ctx, value, partition, part, offset, stored)
                stored, records, offset = stored + answer.stored, records + count, answer.next_offset
                if answer.last_page:
                    return
                slice_.give_way()
        finally:
            if stored:
                ctx.event("pages stored", pages=stored, records=records, partition=part.key)

    def _partition(self, run_id: int, n: int) -> PartitionRow:
        found = self._engine.store().partition_list(run_id, after_n=n - 1, limit=1)
        if not found or found[0].n != n:
            raise NotFound("partition", f"{run_id}/{n}")
        return found[0]

    def _last_end(self, ctx: Context) -> str:
        """Return how the attempt before this one ended, from the record: a crash leaves no error of its own."""
        before = [one for one in self._engine.store().job_executions(ctx.job_id) if one.attempt < ctx.attempt]
        if not before:
            return "and none of them is on record"
        last = max(before, key=lambda one: one.attempt)
        return f"the last was {last.outcome}: {cause(last.error)}"

    async def _one_page(
        self, ctx: Context, value: Any, partition: Partition, part: PartitionRow, offset: str, stored: int
    ) -> tuple[PageStored, int]:
        if part.pages + stored >= self._engine.settings.pages_max:
            most = self._engine.settings.pages_max
            raise Fatal(f"Partition {part.key!r} has more than {most} pages. Raise the setting pages_max, or split it.")
        with self._counted(ctx, part, offset, stored):
            found = await self.page_caller.call(value.page, partition, msgspec.json.decode(offset))
        try:
            records, following = self._pipeline.checked_page(found, offset)
        except InvalidInput as error:
            raise Fatal(f"page() returned an invalid page at offset {offset[:80]}: {error}") from error
        stages = self._pipeline.stages
        item = NewPage(
            run_id=part.run_id,
            n=part.n,
            job_id=ctx.job_id,
            attempt=ctx.attempt,
            offset=offset,
            next_offset=following,
            keys=tuple(records),
            datas=(ELSEWHERE,) * len(records) if stages else tuple(records.values()),
        )
        if stages and records:
            with self._counted(ctx, part, offset, stored):
                return await self._stage(value, item, list(records.items())), len(records)
        return unwrap(await self.page_caller.query(self._engine.store().page_store, item)), len(records)

    async def _stage(self, value: Any, item: NewPage, records: list[tuple[str, Any]]) -> PageStored:
        """Run the user's statements and store the keys and the offset in one transaction. If the offset has moved
        meanwhile, everything is rolled back."""
        answer: PageStored | None = None

        def last(verbs: Verbs) -> DetentError | Moved:
            nonlocal answer
            found = verbs.page_store(item)
            if isinstance(found, DetentError):
                return found
            answer = found
            if found.stored:
                return Moved(f"{item.run_id}/{item.n}", "fetching_pages", True)
            return LeaseLost(item.job_id, item.attempt, f"the partition is at offset {found.next_offset[:80]} already")

        block = self._engine.store().holders_block(item.job_id, item.attempt, last)
        try:
            async with open_transaction(self.page_caller, block, item.run_id) as tx:
                await tx.call(value.stage, records)
        except LeaseLost:
            if answer is None or answer.stored:
                raise
        assert answer is not None
        return answer

    @contextmanager
    def _counted(self, ctx: Context, part: PartitionRow, offset: str, stored: int) -> Iterator[None]:
        """Count the attempts since the last page if the user's method raises: an attempt that stored a page costs
        nothing. `Fatal` after the last attempt."""
        retry = self._pipeline.options.retry
        try:
            yield
        except (Snooze, Throttled, Fatal, LeaseLost, DatabaseError):
            raise
        except Exception as error:
            if stored and retry.covers(error):
                ctx.event(f"The page at offset {offset[:80]} failed: {essence(repr(error))}", level="warning")
                raise Snooze(retry.delay(1, self._engine.ids().random())) from error
            if part.tries >= retry.attempts_max:
                raise Fatal(
                    f"Partition {part.key!r} failed at offset {offset[:80]}; its attempts are used up."
                ) from error
            raise
