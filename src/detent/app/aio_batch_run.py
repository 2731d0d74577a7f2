"""The async twin of: The handle of a batch run."""

# Generated from app/batch_run.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from pathlib import Path
from typing import Self, TextIO

from detent.app.aio_reconciliation import AsyncReconciliation
from detent.app.batch_run import BatchRun, BatchRunSnapshot, TargetChange
from detent.app.reconciliation import Mismatch
from detent.client.aio_polling import aitems_of, asleep_through
from detent.client.list_page import ListPage
from detent.model.batch_records import ReconciliationRow, TargetRow
from detent.model.records import EventRow, Moved, TransitionRow

__all__ = ["AsyncBatchRun"]


class AsyncBatchRun(BatchRunSnapshot):
    """The async twin of `BatchRun`: the same verbs, awaited."""

    async def refresh(self) -> Self:
        """Read the run again, and return this handle. `NotFound`."""
        return self._adopt(await asyncio.to_thread(BatchRun.like(self).refresh))

    async def wait(self, timeout: float | None = None, until: Collection[str] | None = None) -> Self:
        """Wait until the run is in one of the states `until`, where `previewed` means preview with every change
        computed. Without `until`, wait until the run rests. Return this handle, read again.

        `RunTimeout` (a TimeoutError) after `timeout` seconds; the run continues. `RunStuck` if it will not get there by
        itself: a job that the whole run needs is dead, or the run has ended in another state. A run in preview is not
        stuck: someone may apply it.
        """
        sync: BatchRun = BatchRun.like(self)
        await asleep_through(sync._wait_steps(timeout, until), sync._engine.clock)
        return self._adopt(sync)

    async def apply(
        self,
        *,
        only: Iterable[str] | None = None,
        unchanged: bool = False,
        leave_failed: bool = False,
        accept_changed: bool = False,
        overwrite: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Self:
        """Apply the previewed changes: all targets that would change, or `only` those refs. The others stay in preview
        and can be applied later. Return this handle, read again.

        - `unchanged`: also apply targets that would not change.
        - `leave_failed`: leave out targets whose preview failed.
        - `accept_changed`: apply even if the batch's code has changed since the preview.
        - `overwrite`: do not check for conflicts. Without it, if the batch has `observe`, each target is first compared
          with the preview, and a target that others have changed fails with a conflict.

        `PreviewNotReady` before every change is computed, or if previews failed and are not left out; `BatchChanged`;
        `InvalidTransition` if nothing is left to apply; `InvalidInput` for refs that the run does not have.
        """
        return self._adopt(
            await asyncio.to_thread(
                BatchRun.like(self).apply,
                only=only,
                unchanged=unchanged,
                leave_failed=leave_failed,
                accept_changed=accept_changed,
                overwrite=overwrite,
                actor=actor,
                reason=reason,
            )
        )

    async def retry_failed(
        self,
        *,
        only: Iterable[str] | None = None,
        overwrite: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Self:
        """Retry failed targets, all or `only` those, each with the same effect key; `overwrite` as for `apply`. Return
        this handle, read again. `RunBusy` while targets are being applied, or once a rollback was requested;
        `InvalidTransition`, `InvalidInput`.
        """
        return self._adopt(
            await asyncio.to_thread(
                BatchRun.like(self).retry_failed, only=only, overwrite=overwrite, actor=actor, reason=reason
            )
        )

    async def roll_back(self, *, overwrite: bool = False, actor: str | None = None, reason: str | None = None) -> Self:
        """Revert all applied targets; when all are reverted, the run is rolled back. Call it again to retry reverts
        that failed. Return this handle, read again.

        If the batch has `observe`, a target that no longer has the applied value is not reverted, unless `overwrite` is
        true. `newer_runs()` returns later runs that have changed the same targets; they are logged as a warning.

        `RunBusy` while targets are being applied or reverted, `InvalidTransition`, `InvalidInput` if the batch has no
        `revert`.
        """
        return self._adopt(
            await asyncio.to_thread(BatchRun.like(self).roll_back, overwrite=overwrite, actor=actor, reason=reason)
        )

    async def cancel(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Cancel the run. In preview, or before the first target is being applied, it is cancelled at once. Otherwise
        targets that have not begun are cancelled, those being applied finish, and then the run is cancelled; `wait()`
        waits for that. Applied targets stay applied and can be rolled back. Cancelling it again is a no-op. Return this
        handle, read again. `InvalidTransition` if the run has ended, `NotFound`.
        """
        return self._adopt(await asyncio.to_thread(BatchRun.like(self).cancel, actor=actor, reason=reason))

    async def reconcile(self, *, actor: str | None = None, reason: str | None = None) -> AsyncReconciliation:
        """Start to compare every applied target with its current value; `run.reconcile().wait().mismatches()` returns
        the differences. While a comparison is in progress, return that one. `InvalidTransition`, `RunBusy`,
        `InvalidInput` if the batch has no `observe`.
        """
        return AsyncReconciliation.like(
            await asyncio.to_thread(BatchRun.like(self).reconcile, actor=actor, reason=reason)
        )

    async def correct(self, *, actor: str | None = None, reason: str | None = None) -> AsyncBatchRun:
        """Begin a run over the mismatches, from their current values to what was applied. It is previewed and applied
        like any other run. `InvalidInput` if no mismatch is open.
        """
        return AsyncBatchRun.like(await asyncio.to_thread(BatchRun.like(self).correct, actor=actor, reason=reason))

    async def discard_failed(
        self, *, only: Iterable[str] | None = None, actor: str | None = None, reason: str | None = None
    ) -> ListPage[Moved]:
        """Discard the dead jobs of the run; its failed targets stay failed."""
        return await asyncio.to_thread(BatchRun.like(self).discard_failed, only=only, actor=actor, reason=reason)

    async def changes(
        self, *, state: str | None = None, only: Collection[str] | None = None, changed: bool | None = None
    ) -> AsyncIterator[TargetChange]:
        """Yield its targets in the order of the plan, with before and after. Filters: those in a state, `only` some
        refs, those that would change or would not. `InvalidInput`.
        """
        sync = BatchRun.like(self)
        async for item in aitems_of(sync._changes_pages(state=state, only=only, changed=changed), sync._engine.clock):
            yield item

    async def targets(
        self, *, state: str | None = None, only: Collection[str] | None = None, changed: bool | None = None
    ) -> AsyncIterator[TargetRow]:
        """Yield its targets as they are on record. Filters as for `changes`. `InvalidInput`."""
        sync = BatchRun.like(self)
        async for item in aitems_of(sync._targets_pages(state=state, only=only, changed=changed), sync._engine.clock):
            yield item

    async def export(
        self,
        to: str | Path | TextIO,
        format: str = "csv",
        *,
        state: str | None = None,
        only: Collection[str] | None = None,
        changed: bool | None = None,
    ) -> int:
        """Write the changes to a file as `csv` or `json`, and return the number of targets. A file that is given by
        path is written completely or not at all.
        """
        return await asyncio.to_thread(BatchRun.like(self).export, to, format, state=state, only=only, changed=changed)

    async def events(self, *, only: Collection[str] | None = None) -> AsyncIterator[tuple[str, EventRow]]:
        """Yield the events of its targets' jobs, target by target, each with the ref of the target."""
        sync = BatchRun.like(self)
        async for item in aitems_of(sync._events_pages(only=only), sync._engine.clock):
            yield item

    async def newer_runs(self) -> dict[int, list[str]]:
        """Return later runs of the same batch that have changed targets of this run: by id, with the first such refs.
        Only a sample is compared: the first 1,000 applied targets of this run, and the newest 20 runs.
        """
        return await asyncio.to_thread(BatchRun.like(self).newer_runs)

    async def history(self) -> list[TransitionRow]:
        """Return every transition of the run in order, with actor and reason."""
        return await asyncio.to_thread(BatchRun.like(self).history)

    async def mismatches(self, *, open_only: bool = True) -> list[Mismatch]:
        """Return the targets that no longer match what was applied, as the last reconciliation found them; with
        `open_only=False`, also those that match again.
        """
        return await asyncio.to_thread(BatchRun.like(self).mismatches, open_only=open_only)

    async def reconciliations(self) -> list[ReconciliationRow]:
        """Return every reconciliation of the run, the newest first."""
        return await asyncio.to_thread(BatchRun.like(self).reconciliations)
