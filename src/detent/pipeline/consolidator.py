"""The end of a run: consolidate the staged records, retire records that are gone, move the watermark, raise alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, assert_never

import msgspec

from detent.client.engine import EngineRef
from detent.client.job_verbs import unwrap
from detent.client.method_caller import Caller, caller_for
from detent.declare.context import Context
from detent.declare.pipeline import Pipeline
from detent.declare.signals import Fatal, Snooze, Throttled
from detent.errors import DatabaseError, DetentError, LeaseLost
from detent.errors.database import OUTAGES
from detent.model.alert_records import Severity
from detent.model.pipeline_records import ELSEWHERE, ConsolidationStep, PipelineRunRow
from detent.model.records import Moved
from detent.pipeline.run_jobs import TimeSlice, read_run, value_of
from detent.pipeline.transaction import TransactionCaller, open_transaction
from detent.store.contract import Verbs
from detent.views.pipeline_progress import cause

__all__ = ["ALERTS", "Consolidator"]

T = TypeVar("T")

ALERTS = ("consolidation_skipped", "consolidation_failed", "pipeline_failed")
"""The alert policies of pipeline runs. A run that completes resolves these alerts."""

_FAILED_SHOWN = 3


class Consolidator:
    """The functions of the tasks `consolidate`, `skipped` and `failed`."""

    def __init__(self, pipeline: Pipeline, engine: EngineRef) -> None:
        self._pipeline = pipeline
        self._engine = engine
        self.caller: Caller = caller_for(pipeline.method("consolidate"), pipeline.method("retire"))

    async def consolidate(self, ctx: Context, run_id: int) -> None:
        """Consolidate one portion after the other, in parallel with other jobs of the run. The job that finds none left
        ends the run."""
        query = self.caller.query
        run = await query(read_run, self._engine, run_id)
        value = value_of(self._pipeline, run)
        slice_, most = TimeSlice(self._engine, ctx), self._engine.settings.consolidate_tries
        while True:
            portion = unwrap(await query(self._engine.store().portion_take, run_id, ctx.job_id, ctx.attempt, most))
            match portion.kind:
                case "over" | "nothing":
                    return
                case "used_up":
                    what = f"ConsolidationStep {portion.n}" if portion.n else "The end of the run"
                    raise Fatal(f"{what} was tried {portion.tries} times without success.")
                case "portion":
                    await self._take_over(ctx, value, run_id, portion)
                case "finish":
                    await self._finish(ctx, value, run_id, portion.tries)
                    await query(self._resolve_alerts, run)
                    return
                case _:
                    assert_never(portion.kind)
            slice_.give_way()

    async def _take_over(self, ctx: Context, value: Any, run_id: int, portion: ConsolidationStep) -> None:
        items = self._items(run_id, portion)

        def done(verbs: Verbs) -> DetentError | Moved:
            return verbs.portion_done(run_id, portion.n, ctx.job_id, ctx.attempt)

        try:
            async with self._block(ctx, run_id, done) as tx:
                for chunk in self._chunks(items):
                    await tx.call(value.consolidate, chunk)
        except (Snooze, Throttled, Fatal, LeaseLost, DatabaseError):
            raise
        except Exception as error:
            if portion.tries >= self._engine.settings.consolidate_tries:
                raise Fatal(f"ConsolidationStep {portion.n} failed {portion.tries} times.") from error
            raise

    def _items(self, run_id: int, portion: ConsolidationStep) -> list[Any]:
        """Return the arguments of `consolidate`: (key, data), or only keys if the pipeline has `stage`. `Fatal` if the
        code has gained or lost `stage` since the records were staged."""
        stages = self._pipeline.stages
        for key, data in portion.records:
            if (data == ELSEWHERE) != stages:
                where = "in Detent's table" if stages else "in a table of the pipeline's own"
                raise Fatal(f"Record {key!r:.80} of run {run_id} was staged {where} by other code. Start another run.")
        if stages:
            return [key for key, _ in portion.records]
        return [(key, msgspec.json.decode(data)) for key, data in portion.records]

    async def _finish(self, ctx: Context, value: Any, run_id: int, tries: int) -> None:
        try:
            await self._retire(ctx, value, run_id)
            unwrap(await self.caller.query(self._engine.store().pipeline_complete, run_id, ctx.job_id, ctx.attempt))
        except (Snooze, Throttled, Fatal, LeaseLost, *OUTAGES):
            raise
        except Exception as error:
            if tries >= self._engine.settings.consolidate_tries:
                raise Fatal(f"The end of the run failed {tries} times.") from error
            raise

    async def _retire(self, ctx: Context, value: Any, run_id: int) -> None:
        """Retire, after a full run, the keys of earlier runs that this one did not find (P6)."""
        store, most = self._engine.store(), self._engine.settings.consolidate_fetch
        while self._pipeline.retires:
            keys = unwrap(await self.caller.query(store.gone_take, run_id, ctx.job_id, ctx.attempt, most))
            if not keys:
                return

            def done(verbs: Verbs, gone: Sequence[str] = tuple(keys)) -> DetentError | Moved:
                return verbs.gone_done(run_id, ctx.job_id, ctx.attempt, gone)

            async with self._block(ctx, run_id, done) as tx:
                for chunk in self._chunks(keys):
                    await tx.call(value.retire, chunk)

    def _block(
        self, ctx: Context, run_id: int, done: Callable[[Verbs], DetentError | Moved]
    ) -> AbstractAsyncContextManager[TransactionCaller]:
        block = self._engine.store().holders_block(ctx.job_id, ctx.attempt, done)
        return open_transaction(self.caller, block, run_id)

    def _chunks(self, items: Sequence[T]) -> Iterator[list[T]]:
        size = self._engine.settings.consolidate_chunk
        for start in range(0, len(items), size):
            yield list(items[start : start + size])

    # -- alerts ------------------------------------------------------------------------------------------------

    def skipped(self, ctx: Context, run_id: int) -> None:
        """Raise an alert for a run with failed partitions (P3), and wait as long as the option `hold` says. If no
        operator has forced the run by then, it fails."""
        run = read_run(self._engine, run_id)
        if run.state != "consolidation_skipped":
            return
        said = f"{run.parts_failed} of {run.partitions} partitions failed: nothing was consolidated"
        self._alert(run, "consolidation_skipped", f"{said}; {self._failures(run_id)}")
        left = (run.moved_at + self._pipeline.options.hold_for - self._engine.store().now()).total_seconds()
        if left > 0:
            raise Snooze(left)

    def failed(self, ctx: Context, run_id: int) -> None:
        """Raise an alert for a run that failed for another reason."""
        run = read_run(self._engine, run_id)
        if run.state == "failed":
            policy = "consolidation_failed" if run.started_at is not None else "pipeline_failed"
            self._alert(run, policy, cause(run.error))

    def _alert(self, run: PipelineRunRow, policy: str, what: str) -> None:
        watermark = (
            "there is no watermark yet" if run.since is None else f"the watermark stays at {run.since.isoformat()}"
        )
        message = f"run {run.id} of {run.name}: {what}; {watermark}"
        facts = msgspec.json.encode(
            {"run_id": str(run.id), "pipeline": run.name, "watermark": run.watermark, "tenant": run.tenant}
        ).decode()
        severity: Severity = "warning" if policy == "consolidation_skipped" else "critical"
        self._engine.store().alert_raise(policy, _scope(run), severity, message, facts)

    def _failures(self, run_id: int) -> str:
        found = self._engine.store().partition_list(run_id, state="failed", limit=_FAILED_SHOWN)
        return "; ".join(f"{part.key}: {cause(part.error)}" for part in found)

    def _resolve_alerts(self, run: PipelineRunRow) -> None:
        for policy in ALERTS:
            self._engine.store().alert_resolve(policy, _scope(run), f"run {run.id} of {run.name} completed")


def _scope(run: PipelineRunRow) -> str:
    return f"pipeline:{run.tenant}/{run.name}" if run.tenant else f"pipeline:{run.name}"
