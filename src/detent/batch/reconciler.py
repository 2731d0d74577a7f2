"""Reconciliation: compare every applied target with its current value."""

from __future__ import annotations

from detent.batch.planner import gives_up
from detent.batch.run_jobs import RunCache
from detent.client.engine import EngineRef
from detent.client.job_verbs import unwrap
from detent.client.method_caller import Caller, caller_for
from detent.declare.batch import Batch, same
from detent.declare.context import Context
from detent.declare.signals import Critical, Snooze, Throttled
from detent.errors import TransitionRace
from detent.model import json_codec
from detent.model.batch_records import Observed, ReconciliationRow, TargetRow
from detent.model.stored_text import message_text

__all__ = ["Reconciler"]

_PAGE = 100
_ERROR_MAX = 500


class Reconciler:
    """The function of `<batch>.reconcile`."""

    def __init__(self, batch: Batch, engine: EngineRef, runs: RunCache) -> None:
        self._batch = batch
        self._engine = engine
        self._runs = runs
        self.caller: Caller = caller_for(getattr(batch.kind, "observe", None))

    async def reconcile(self, ctx: Context, run: int) -> None:
        """Compare the applied targets, a page at a time. A repeated attempt goes on after the last page on record. If
        a target cannot be observed, it is retried with the job; in the end it counts as a mismatch without a value."""
        caller = self.caller
        value = await caller.query(self._runs.value, run)
        current = await caller.query(self._reconciliation, ctx, run)
        while current is not None and current.done_at is None:
            # A batch that has lost its method observe finds no mismatch; its planned reconciliations go on.
            targets = await caller.query(self._page, run, current.cursor) if self._batch.observes else []
            found: list[Observed] = []
            for target in targets:
                actual, why = None, ""
                try:
                    actual = self._batch.encode_observed(target.ref, await caller.call(value.observe, target.ref))
                except (Throttled, Snooze, Critical):
                    raise
                except Exception as error:
                    if not await caller.query(gives_up, self._engine.store(), ctx, self._batch.options.retry.retries):
                        error.add_note(f"while observing {target.ref!r}")
                        raise
                    why = f"{type(error).__name__}: {error}"
                if actual is None or target.after is None or not same(actual, target.after):
                    found.append(Observed(target.n, target.after, actual))
                    self._report(ctx, run, current.no, target, actual, why)
            current = await caller.query(self._record, ctx, current, targets, found)

    def _reconciliation(self, ctx: Context, run: int) -> ReconciliationRow | None:
        """Return the reconciliation of this job; None if it was never begun, or is gone."""
        rows = self._engine.store().reconciliation_list(run)
        return next((row for row in rows if row.job_id == ctx.job_id), None)

    def _page(self, run: int, after_n: int) -> list[TargetRow]:
        return self._engine.store().target_list(run, state="applied", after_n=after_n, limit=_PAGE)

    def _record(
        self, ctx: Context, row: ReconciliationRow, targets: list[TargetRow], found: list[Observed]
    ) -> ReconciliationRow | None:
        last = len(targets) < _PAGE
        to_cursor = targets[-1].n if targets else row.cursor
        answer = self._engine.store().reconcile_record(
            (ctx.job_id, ctx.attempt), row.run_id, row.no, row.cursor, to_cursor, len(targets), found, last
        )
        return self._reconciliation(ctx, row.run_id) if isinstance(answer, TransitionRace) else unwrap(answer)

    def _report(self, ctx: Context, run: int, no: int, target: TargetRow, actual: str | None, why: str) -> None:
        ctx.event(
            message_text(f"{target.ref} cannot be observed: {why}", bytes_max=_ERROR_MAX)
            if why
            else f"{target.ref} no longer matches what was applied",
            level="warning",
            key=f"{run}:{target.n}:reconcile:{no}",
            ref=target.ref,
            expected=None if target.after is None else json_codec.decode(target.after),
            actual=None if actual is None else json_codec.decode(actual),
        )
