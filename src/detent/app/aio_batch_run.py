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
from detent.client.aio_steps import aitems_of, asleep_through
from detent.client.listing import ListPage
from detent.model.batch_records import ReconciliationRow, TargetRow
from detent.model.records import EventRow, Moved, TransitionRow

__all__ = ["AsyncBatchRun"]


class AsyncBatchRun(BatchRunSnapshot):
    """The async twin of `BatchRun`: the same verbs, awaited."""

    async def refresh(self) -> Self:
        """Read the run again, and return this handle. `NotFound`."""
        return self._adopt(await asyncio.to_thread(BatchRun.like(self).refresh))

    async def wait(self, timeout: float | None = None, until: Collection[str] | None = None) -> Self:
        """Wait until the run is in one of the states `until`, where `previewed` is the state preview with every change
        worked out. Without `until`, wait until the run rests. Return this handle, read again.

        `RunTimeout` (a TimeoutError) after `timeout` seconds; the run goes on. `RunStuck` if it will not get there by
        itself: a job that the whole run waits for is dead, or the run has ended in another state. A run that waits for
        approval, in preview, is waited for.
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
        """Apply what the preview showed: all targets that would change, or `only` those refs. The others stay in
        preview and can be applied later, by another call. `unchanged` takes those that would stay as they are, too;
        `leave_failed` leaves out those that could not be previewed. Return this handle, read again.

        If the batch has `observe`, each target is compared with the preview first. A target that others have changed
        since is not changed: it fails with a conflict. `overwrite=True` changes it without that check.

        `PreviewNotReady` before every change is worked out, or if some could not be and are not left out;
        `BatchChanged` if the batch's code has changed since the preview, unless `accept_changed`; `InvalidTransition`
        if nothing is left to apply; `InvalidInput` for refs that the run does not have.
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
        """Try failed targets again, all or `only` those, each under the effect key it had; `overwrite` as for `apply`.
        `RunBusy` while they are being applied, or once a rollback was asked for; `InvalidTransition`,
        `InvalidInput`.
        """
        return self._adopt(
            await asyncio.to_thread(
                BatchRun.like(self).retry_failed, only=only, overwrite=overwrite, actor=actor, reason=reason
            )
        )

    async def roll_back(self, *, overwrite: bool = False, actor: str | None = None, reason: str | None = None) -> Self:
        """Bring all applied targets back to what they were; the run is rolled back when they are. Called again, it
        retries the reverts that gave up. If the batch has `observe`, a target that no longer is what this run made of
        it is not reverted, unless `overwrite` is true. `newer_runs()` tells which later runs have changed the same
        targets; they are logged as a warning.

        `RunBusy` while targets are being applied or reverted, `InvalidTransition`, `InvalidInput` if the batch has no
        `revert`.
        """
        return self._adopt(
            await asyncio.to_thread(BatchRun.like(self).roll_back, overwrite=overwrite, actor=actor, reason=reason)
        )

    async def reconcile(self, *, actor: str | None = None, reason: str | None = None) -> AsyncReconciliation:
        """Compare every applied target with the world now; `run.reconcile().wait().mismatches()` are those that
        differ. While a comparison is under way, return that one. `InvalidTransition`, `RunBusy`, `InvalidInput` if the
        batch has no `observe`.
        """
        return AsyncReconciliation.like(
            await asyncio.to_thread(BatchRun.like(self).reconcile, actor=actor, reason=reason)
        )

    async def correct(self, *, actor: str | None = None, reason: str | None = None) -> AsyncBatchRun:
        """Begin a run over the targets that no longer are what this run made of them: from what they are to what they
        should be. It is a preview, read and applied like any other. `InvalidInput` if no mismatch is known.
        """
        return AsyncBatchRun.like(await asyncio.to_thread(BatchRun.like(self).correct, actor=actor, reason=reason))

    async def discard_failed(
        self, *, only: Iterable[str] | None = None, actor: str | None = None, reason: str | None = None
    ) -> ListPage[Moved]:
        """Discard the dead jobs of the run: its failed targets stay failed."""
        return await asyncio.to_thread(BatchRun.like(self).discard_failed, only=only, actor=actor, reason=reason)

    async def changes(
        self, *, state: str | None = None, only: Collection[str] | None = None, changed: bool | None = None
    ) -> AsyncIterator[TargetChange]:
        """Yield its targets in the order of the plan, with before and after: those of a state, those of `only` some
        refs, those that would change or not. `InvalidInput`.
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
        """Write the difference to a file as `csv` or `json`, and return the number of targets. A path gets the whole
        file or nothing.
        """
        return await asyncio.to_thread(BatchRun.like(self).export, to, format, state=state, only=only, changed=changed)

    async def events(self, *, only: Collection[str] | None = None) -> AsyncIterator[tuple[str, EventRow]]:
        """Yield the events of the jobs of its targets, target by target, each with the ref it is about."""
        sync = BatchRun.like(self)
        async for item in aitems_of(sync._events_pages(only=only), sync._engine.clock):
            yield item

    async def newer_runs(self) -> dict[int, list[str]]:
        """Return runs of the same batch that began later and have changed targets that this run has applied: by id,
        with the first of those refs. A sample: the first 1,000 applied targets of this run, and the newest 20 others.
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
