"""The async twin of: The handle of a reconciliation, which compares targets of a batch run with what was applied."""

# Generated from app/reconciliation.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from typing import Self

from detent.app.reconciliation import Mismatch, Reconciliation, ReconciliationSnapshot
from detent.client.aio_polling import asleep_through

__all__ = ["AsyncReconciliation"]


class AsyncReconciliation(ReconciliationSnapshot):
    """The async twin of `Reconciliation`: the same verbs, awaited."""

    async def wait(self, timeout: float | None = None) -> Self:
        """Wait until every applied target was compared, and return this handle, read again. `RunTimeout` (a
        TimeoutError) after `timeout` seconds, `RunStuck` if its job failed.
        """
        sync: Reconciliation = Reconciliation.like(self)
        await asleep_through(sync._wait_steps(timeout), sync._engine.clock)
        return self._adopt(sync)

    async def mismatches(self) -> list[Mismatch]:
        """Return the targets that no longer match what was applied, each with ref, expected and actual. Call `wait()`
        first.
        """
        return await asyncio.to_thread(Reconciliation.like(self).mismatches)
