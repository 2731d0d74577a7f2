"""The end of a run: staged records are taken over, portion by portion; what is gone is retired; the watermark moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, assert_never

import msgspec

from detent.client.client import one
from detent.declare.context import Context
from detent.declare.pipeline import Pipeline
from detent.declare.signals import Fatal, Snooze, Throttled
from detent.errors import DatabaseError, DetentError, LeaseLost, WrongPlace
from detent.model.alert_records import Severity
from detent.model.pipeline_records import PipelineRunRow, Portion
from detent.model.records import Moved
from detent.pipeline.ground import Ground, Slice, value_of
from detent.store.contract import Tx, Verbs
from detent.views.pipelines import cause

__all__ = ["ALERTS", "Consolidating", "PipelineTx"]

T = TypeVar("T")

ALERTS = ("consolidation_skipped", "consolidation_failed", "pipeline_failed")
"""The policies of alerts about pipeline runs; a run that completes resolves them."""

_FAILED_SHOWN = 3


class Outcome(NamedTuple):
    """What a statement gave: its rows, and how many rows it changed."""

    rows: list[tuple[Any, ...]]
    rowcount: int


class PipelineTx:
    """What `consolidate` and `retire` write with: one transaction, together with the mark of what they were given."""

    def __init__(self, tx: Tx) -> None:
        self._open: Tx | None = tx

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs. Its transaction is not yours to end."""
        return self._tx("connection").connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Outcome:
        """Run a statement with `:name` parameters: its rows, and how many it changed."""
        return Outcome(*self._tx("execute").execute(sql, params))

    def end(self) -> None:
        """From now on its connection is somebody else's."""
        self._open = None

    def _tx(self, word: str) -> Tx:
        if self._open is None:
            raise WrongPlace(f"tx.{word}", "after its transaction has ended", "write inside consolidate or retire")
        return self._open


class Consolidating:
    """What the consolidating jobs do, and those that tell of a run that came to nothing."""

    def __init__(self, pipeline: Pipeline, ground: Ground) -> None:
        self._pipeline = pipeline
        self._ground = ground

    def consolidate(self, ctx: Context, run_id: int) -> None:
        """One portion after the other, beside other jobs that do the same; whoever finds none left ends the run."""
        run = self._ground.run(run_id)
        value = value_of(self._pipeline, run)
        slice_, most = Slice(self._ground, ctx), self._ground.settings.consolidate_tries
        while True:
            portion = one(self._ground.store().portion_take(run_id, ctx.job_id, ctx.attempt, most))
            match portion.kind:
                case "over" | "nothing":
                    return
                case "used_up":
                    what = f"portion {portion.n}" if portion.n else "the end of the run"
                    raise Fatal(f"{what} was tried {portion.tries} times and never done")
                case "portion":
                    self._take_over(ctx, value, run_id, portion)
                case "finish":
                    self._finish(ctx, value, run_id, portion.tries)
                    self._all_is_well(run)
                    return
                case _:
                    assert_never(portion.kind)
            slice_.give_way()

    def _take_over(self, ctx: Context, value: Any, run_id: int, portion: Portion) -> None:
        records = [(key, msgspec.json.decode(data)) for key, data in portion.records]

        def done(verbs: Verbs) -> DetentError | Moved:
            return verbs.portion_done(run_id, portion.n, ctx.job_id, ctx.attempt)

        try:
            with self._block(ctx, done) as tx:
                for chunk in self._chunks(records):
                    value.consolidate(tx, chunk)
        except (Snooze, Throttled, Fatal, LeaseLost, DatabaseError):
            raise
        except Exception as error:
            if portion.tries >= self._ground.settings.consolidate_tries:
                raise Fatal(f"portion {portion.n} failed {portion.tries} times") from error
            raise

    def _finish(self, ctx: Context, value: Any, run_id: int, tries: int) -> None:
        try:
            self._retire(ctx, value, run_id)
            one(self._ground.store().pipeline_complete(run_id, ctx.job_id, ctx.attempt))
        except (Snooze, Throttled, Fatal, LeaseLost):
            raise
        except Exception as error:
            if tries >= self._ground.settings.consolidate_tries:
                raise Fatal(f"the end of the run failed {tries} times") from error
            raise

    def _retire(self, ctx: Context, value: Any, run_id: int) -> None:
        """P6: after a full run, what was there before and was not seen."""
        store, most = self._ground.store(), self._ground.settings.consolidate_fetch
        retire: Callable[..., Any] | None = getattr(value, "retire", None)
        while retire is not None and (keys := one(store.gone_take(run_id, ctx.job_id, ctx.attempt, most))):
            gone = keys

            def done(verbs: Verbs) -> DetentError | Moved:
                return verbs.gone_done(run_id, ctx.job_id, ctx.attempt, gone)  # noqa: B023 - called before the next turn

            with self._block(ctx, done) as tx:
                for chunk in self._chunks(gone):
                    retire(tx, chunk)

    @contextmanager
    def _block(self, ctx: Context, done: Callable[[Verbs], DetentError | Moved]) -> Iterator[PipelineTx]:
        with self._ground.store().holders_block(ctx.job_id, ctx.attempt, done) as opened:
            tx = PipelineTx(opened)
            try:
                yield tx
            finally:
                tx.end()

    def _chunks(self, items: Sequence[T]) -> Iterator[list[T]]:
        size = self._ground.settings.consolidate_chunk
        for start in range(0, len(items), size):
            yield list(items[start : start + size])

    # -- telling -----------------------------------------------------------------------------------------------

    def skipped(self, ctx: Context, run_id: int) -> None:
        """P3: partitions failed. Somebody is told; where the pipeline says so, the run waits for them. When this ends,
        and nobody has forced the run, it fails."""
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
