"""The handle of a reconciliation, which compares targets of a batch run with what was applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from msgspec import Struct

from detent.client.handle import Handle
from detent.client.polling import pauses_until, sleep_through
from detent.errors import RunStuck, RunTimeout
from detent.model import json_codec
from detent.model.batch_records import MismatchRow, ReconciliationRow
from detent.store.contract import Verbs

__all__ = ["Mismatch", "Reconciliation", "ReconciliationSnapshot", "mismatches_of"]

_PAGE = 1000


class Mismatch(Struct, frozen=True, kw_only=True):
    """A target that no longer matches what was applied."""

    ref: str
    expected: Any
    actual: Any


class ReconciliationSnapshot(Handle[ReconciliationRow]):
    """A reconciliation as it was when it was last read."""

    def __repr__(self) -> str:
        return f"<Reconciliation {self.row.no} of run {self.row.run_id}: {self.row.checked} checked>"

    @property
    def checked(self) -> int:
        """Number of targets compared so far."""
        return self.row.checked


class Reconciliation(ReconciliationSnapshot):
    """Handle of a reconciliation: workers compare every applied target of a run with its current value."""

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until every applied target was compared, and return this handle, read again. `RunTimeout` (a
        TimeoutError) after `timeout` seconds, `RunStuck` if its job failed."""
        sleep_through(self._wait_steps(timeout), self._engine.clock)
        return self

    def _wait_steps(self, timeout: float | None = None) -> Iterator[float]:
        engine = self._engine
        yield from pauses_until(self._is_done, timeout, engine.clock, engine.settings, self._late)

    def mismatches(self) -> list[Mismatch]:
        """Return the targets that no longer match what was applied, each with ref, expected and actual. Call `wait()`
        first."""
        return [*mismatches_of(self._engine.store, self.row.run_id, True)]

    def _is_done(self) -> bool:
        rows = self._engine.store.reconciliation_list(self.row.run_id, 1000)
        self.row = next((row for row in rows if row.no == self.row.no), self.row)
        if self.row.done_at is None:
            (job,) = self._engine.store.job_get([self.row.job_id])
            if job is None or job.state in ("quarantined", "failed", "cancelled"):
                raise RunStuck(self.row.run_id, "reconciling", (job and job.error) or "its job is gone")
        return self.row.done_at is not None

    def _late(self, waited: float) -> RunTimeout:
        return RunTimeout(self.row.run_id, "reconciling", waited)


def mismatches_of(verbs: Verbs, run_id: int, open_only: bool) -> Iterator[Mismatch]:
    """Yield the mismatches of a run, or only those that are open."""
    after_n = 0
    while True:
        page: list[MismatchRow] = verbs.mismatch_list(run_id, open_only=open_only, after_n=after_n, limit=_PAGE)
        for row in page:
            yield Mismatch(ref=row.ref, expected=_value(row.expected), actual=_value(row.actual))
        if len(page) < _PAGE:
            return
        after_n = page[-1].n


def _value(text: str | None) -> Any:
    return None if text is None else json_codec.decode(text, field="change")
