"""The end of a run: staged records are taken over, portion by portion; what is gone is retired; the watermark moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, assert_never

import msgspec

from detent.client.colour import Colour, colour_of
from detent.client.moves import one
from detent.declare.context import Context
from detent.declare.pipeline import Pipeline
from detent.declare.signals import Fatal, Snooze, Throttled
from detent.errors import DatabaseError, DetentError, LeaseLost
from detent.errors.database import OUTAGES
from detent.model.alert_records import Severity
from detent.model.pipeline_records import ELSEWHERE, PipelineRunRow, Portion
from detent.model.records import Moved
from detent.pipeline.blocks import Hand, in_block
from detent.pipeline.ground import Ground, Slice, value_of
from detent.store.contract import Verbs
from detent.views.pipelines import cause

__all__ = ["ALERTS", "Consolidating"]

T = TypeVar("T")

ALERTS = ("consolidation_skipped", "consolidation_failed", "pipeline_failed")
"""The policies of alerts about pipeline runs; a run that completes resolves them."""

_FAILED_SHOWN = 3


class Consolidating:
    """What the consolidating jobs do, and those that tell of a run that came to nothing."""

    def __init__(self, pipeline: Pipeline, ground: Ground) -> None:
        self._pipeline = pipeline
        self._ground = ground
        self.colour: Colour = colour_of(pipeline.method("consolidate"), pipeline.method("retire"))

    async def consolidate(self, ctx: Context, run_id: int) -> None:
        """One portion after the other, beside other jobs that do the same; whoever finds none left ends the run."""
        ask = self.colour.ask
        run = await ask(self._ground.run, run_id)
        value = value_of(self._pipeline, run)
        slice_, most = Slice(self._ground, ctx), self._ground.settings.consolidate_tries
        while True:
            portion = one(await ask(self._ground.store().portion_take, run_id, ctx.job_id, ctx.attempt, most))
            match portion.kind:
                case "over" | "nothing":
                    return
                case "used_up":
                    what = f"portion {portion.n}" if portion.n else "the end of the run"
                    raise Fatal(f"{what} was tried {portion.tries} times and never done")
                case "portion":
                    await self._take_over(ctx, value, run_id, portion)
                case "finish":
                    await self._finish(ctx, value, run_id, portion.tries)
                    await ask(self._all_is_well, run)
                    return
                case _:
                    assert_never(portion.kind)
            slice_.give_way()

    async def _take_over(self, ctx: Context, value: Any, run_id: int, portion: Portion) -> None:
        items = self._items(run_id, portion)

        def done(verbs: Verbs) -> DetentError | Moved:
            return verbs.portion_done(run_id, portion.n, ctx.job_id, ctx.attempt)

        try:
            async with self._block(ctx, run_id, done) as hand:
                for chunk in self._chunks(items):
                    await hand.call(value.consolidate, chunk)
        except (Snooze, Throttled, Fatal, LeaseLost, DatabaseError):
            raise
        except Exception as error:
            if portion.tries >= self._ground.settings.consolidate_tries:
                raise Fatal(f"portion {portion.n} failed {portion.tries} times") from error
            raise

    def _items(self, run_id: int, portion: Portion) -> list[Any]:
        """What `consolidate` is given: (key, data), or keys where the data lies in the pipeline's own table. `Fatal`
        where the code has changed its mind since the record was staged: the data is where it does not look."""
        stages = self._pipeline.stages
        for key, data in portion.records:
            if (data == ELSEWHERE) != stages:
                where = "in Detent's table" if stages else "in a table of the pipeline's own"
                raise Fatal(f"record {key!r:.80} of run {run_id} was staged {where}, by other code: start another run")
        if stages:
            return [key for key, _ in portion.records]
        return [(key, msgspec.json.decode(data)) for key, data in portion.records]

    async def _finish(self, ctx: Context, value: Any, run_id: int, tries: int) -> None:
        try:
            await self._retire(ctx, value, run_id)
            one(await self.colour.ask(self._ground.store().pipeline_complete, run_id, ctx.job_id, ctx.attempt))
        except (Snooze, Throttled, Fatal, LeaseLost, *OUTAGES):
            raise
        except Exception as error:
            if tries >= self._ground.settings.consolidate_tries:
                raise Fatal(f"the end of the run failed {tries} times") from error
            raise

    async def _retire(self, ctx: Context, value: Any, run_id: int) -> None:
        """P6: after a full run, what was there before and was not seen."""
        store, most = self._ground.store(), self._ground.settings.consolidate_fetch
        while self._pipeline.retires:
            keys = one(await self.colour.ask(store.gone_take, run_id, ctx.job_id, ctx.attempt, most))
            if not keys:
                return

            def done(verbs: Verbs, gone: Sequence[str] = tuple(keys)) -> DetentError | Moved:
                return verbs.gone_done(run_id, ctx.job_id, ctx.attempt, gone)

            async with self._block(ctx, run_id, done) as hand:
                for chunk in self._chunks(keys):
                    await hand.call(value.retire, chunk)

    def _block(
        self, ctx: Context, run_id: int, done: Callable[[Verbs], DetentError | Moved]
    ) -> AbstractAsyncContextManager[Hand]:
        block = self._ground.store().holders_block(ctx.job_id, ctx.attempt, done)
        return in_block(self.colour, block, run_id)

    def _chunks(self, items: Sequence[T]) -> Iterator[list[T]]:
        size = self._ground.settings.consolidate_chunk
        for start in range(0, len(items), size):
            yield list(items[start : start + size])

    # -- telling -----------------------------------------------------------------------------------------------

    def skipped(self, ctx: Context, run_id: int) -> None:
        """P3: partitions failed. Somebody is told; where the pipeline says so, the run waits for them. When this ends,
        and the run was not forced, it fails."""
        run = self._ground.run(run_id)
        if run.state != "consolidation_skipped":
            return
        said = f"{run.parts_failed} of {run.partitions} partitions failed: nothing was consolidated"
        self._alert(run, "consolidation_skipped", f"{said}; {self._failures(run_id)}")
        left = (run.moved_at + self._pipeline.options.hold_for - self._ground.store().now()).total_seconds()
        if left > 0:
            raise Snooze(left)

    def failed(self, ctx: Context, run_id: int) -> None:
        """A run failed otherwise. Somebody is told."""
        run = self._ground.run(run_id)
        if run.state == "failed":
            policy = "consolidation_failed" if run.started_at is not None else "pipeline_failed"
            self._alert(run, policy, cause(run.error))

    def _alert(self, run: PipelineRunRow, policy: str, what: str) -> None:
        stands = "there is no watermark yet" if run.since is None else f"the watermark stays at {run.since.isoformat()}"
        message = f"run {run.id} of {run.name}: {what}; {stands}"
        facts = msgspec.json.encode(
            {"run_id": str(run.id), "pipeline": run.name, "watermark": run.watermark, "tenant": run.tenant}
        ).decode()
        severity: Severity = "warning" if policy == "consolidation_skipped" else "critical"
        self._ground.store().alert_raise(policy, _scope(run), severity, message, facts)

    def _failures(self, run_id: int) -> str:
        found = self._ground.store().partition_list(run_id, state="failed", limit=_FAILED_SHOWN)
        return "; ".join(f"{part.key}: {cause(part.error)}" for part in found)

    def _all_is_well(self, run: PipelineRunRow) -> None:
        for policy in ALERTS:
            self._ground.store().alert_resolve(policy, _scope(run), f"run {run.id} of {run.name} completed")


def _scope(run: PipelineRunRow) -> str:
    return f"pipeline:{run.tenant}/{run.name}" if run.tenant else f"pipeline:{run.name}"
