"""What the verbs of batch runs read and write, inside one transaction. Every database has an implementation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from detent.errors import DetentError, LeaseLost
from detent.model.batch_records import (
    ActionRow,
    BatchRunRow,
    Holder,
    NewAction,
    NewBatchRun,
    Observed,
    Previewed,
    ReconciliationRow,
    TargetJob,
    TargetRow,
)
from detent.model.records import Enqueued, Moved, NewJob
from detent.store.batches.rules import Named

__all__ = ["BatchTables", "Undone"]


class Undone(Exception):
    """A refusal after something was written: the transaction undoes what the verb wrote, and returns the error."""

    def __init__(self, error: DetentError) -> None:
        self.error = error


class BatchTables(Protocol):
    """The tables of batch runs, targets, actions and reconciliations."""

    def batch_get(self, run_id: int) -> BatchRunRow | None: ...

    def target_list(
        self,
        run_id: int,
        *,
        state: str | None = None,
        refs: Sequence[str] | None = None,
        changed: bool | None = None,
        after_n: int = 0,
        limit: int = 1000,
    ) -> list[TargetRow]: ...

    def _batch_now(self) -> datetime: ...

    def _batch_lost(self, holder: Holder, run_id: int) -> LeaseLost | None:
        """Lock the job of a holder, and return why it is no job of the run that the holder holds."""
        ...

    def _batch_lock(self, run_id: int) -> BatchRunRow | None:
        """Return a run that no other transaction can change until this one ends."""
        ...

    def _batch_hold(self, run_id: int) -> BatchRunRow | None:
        """Lock the open action of a run, then the run, and return the run."""
        ...

    def _batch_enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | DetentError]: ...

    def _batch_retry(self, jobs: Sequence[int], action: ActionRow) -> list[Moved | DetentError]: ...

    def _batch_insert(self, run: NewBatchRun) -> bool:
        """Insert a run unless its id is taken, and return whether it is new."""
        ...

    def _batch_taken(self, run_id: int, first_n: int, refs: Sequence[str]) -> list[tuple[int, str]]:
        """Return the targets that have one of these refs, or one of the numbers that they would get."""
        ...

    def _batch_add(self, run_id: int, new: Sequence[tuple[int, str]], last: bool) -> None: ...

    def _batch_previewed(self, run_id: int, items: Sequence[Previewed]) -> None: ...

    def _batch_named(self, run_id: int, refs: Sequence[str]) -> list[Named]:
        """Return the targets with these refs, by number."""
        ...

    def _batch_begin(self, run: BatchRunRow, item: NewAction, job_id: int, chosen: Sequence[int] | None) -> None:
        """Insert an action and move the run. `chosen` has the numbers of the targets that were named."""
        ...

    def _batch_action(self, action_id: int) -> ActionRow | None:
        """Return an action that no other transaction can change until this one ends."""
        ...

    def _batch_next(self, action: ActionRow, limit: int) -> list[TargetRow]:
        """Return the next targets that an action has to move."""
        ...

    def _batch_to_move(self, action: ActionRow, after: int, until: int) -> tuple[list[int], list[int]]:
        """Return the numbers of the targets of a portion that need a job, and the jobs to retry."""
        ...

    def _batch_take(self, action: ActionRow, jobs: Sequence[TargetJob]) -> int:
        """Give targets their jobs, and return how many took them."""
        ...

    def _batch_advance(self, action: ActionRow, to_cursor: int, moved: int, last: bool) -> bool:
        """Move the cursor of an action, and return whether it was where `action` says."""
        ...

    def _batch_halt(self, run_id: int, reason: str) -> bool:
        """End the open action of a run, and return False if the run was stopped before."""
        ...

    def _batch_cancel(self, run: BatchRunRow, actor: str, reason: str | None) -> None:
        """End the open action of a run, record who cancels it, and move it to cancelled if no target is in flight."""
        ...

    def _batch_conflict(self, run_id: int, job_id: int, found: str) -> None: ...

    def _batch_open_reconciliation(self, run_id: int) -> int | None:
        """Return the number of the reconciliation that is under way. One whose job has given up is ended."""
        ...

    def _batch_begin_reconciliation(
        self, run_id: int, planned: int | None, actor: str, job_id: int, following: int | None, at: datetime | None
    ) -> int:
        """Insert a reconciliation, and return its number. A planned one sets when the `following` is due."""
        ...

    def _batch_reconciliation(self, run_id: int, no: int) -> ReconciliationRow | None: ...

    def _batch_reconciled(
        self, was: ReconciliationRow, to_cursor: int, checked: int, found: Sequence[Observed], last: bool
    ) -> bool:
        """Record what was found, and return whether the cursor was where `was` says."""
        ...
