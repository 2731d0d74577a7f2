"""The verbs of batch runs: a change to many targets that a person reads before it is applied.

`store/contract.py` defines the words used here. A run is worked on by its jobs (`run_id` of a job is the run's id): one
makes the plan, some compute the preview, one moves the targets of an action, and each target has a job that applies it
and, if it is rolled back, a job that reverts it.

A target follows its job in the transaction that moves the job, whichever verb that is:

- pending: queued
- running: applying
- succeeded: applied, or rolled_back if it is the job that reverts
- any other final state: failed

The run follows its targets in the same transaction:

- queued to applying, when the first target is applying
- to applied, partial or failed, when no target is queued or applying and no action is outstanding
- partial or failed to applying, when a failed target is retried, also by `job_retry`
- to cancelled, when no target is in flight after a cancel was requested
- to rolled_back, when a requested rollback has reverted all applied targets

Each move of a run is recorded. After a rollback was requested, the database refuses to retry targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from detent.errors import (
    DetentError,
    DuplicateTarget,
    IdConflict,
    InvalidInput,
    InvalidTransition,
    LeaseLost,
    NotFound,
    PreviewNotReady,
    RunBusy,
    TransitionRace,
)
from detent.model.batch_records import (
    ActionPortion,
    BatchFilter,
    BatchRunRow,
    Holder,
    MismatchRow,
    NewAction,
    NewBatchRun,
    Observed,
    Previewed,
    ReconciliationRow,
    Stepped,
    TargetJob,
    TargetRow,
)
from detent.model.records import NewJob, Pruned
from detent.store.verb import verb

__all__ = ["BatchVerbs"]


class BatchVerbs(Protocol):
    """Batch runs."""

    # -- the preview -------------------------------------------------------------------------------------------

    @verb("client", IdConflict)
    def batch_create(self, run: NewBatchRun, plan: NewJob) -> BatchRunRow | DetentError:
        """Create a run in state preview, without targets, and enqueue the job that makes its plan. The same call again
        returns the same run; an id that belongs to something else: `IdConflict`."""
        ...

    @verb("worker", LeaseLost, DuplicateTarget, InvalidInput, RunBusy, NotFound)
    def target_add(
        self, holder: Holder, run_id: int, first_n: int, refs: Sequence[str], preview: NewJob | None, last: bool
    ) -> BatchRunRow | DetentError:
        """Add targets from number `first_n` on (the first of a run is 1), and enqueue the job that computes their
        preview. `last`: these are the last targets.

        Only by the holder of the plan's job. Targets that exist under the same number are skipped, so that a plan can
        be made again from its beginning. A ref that has another number, or is twice in one call: `DuplicateTarget`; a
        number that another ref has, or that is not the next: `InvalidInput`; a new target of a run whose plan is
        complete: `RunBusy`. `NotFound`.
        """
        ...

    @verb("worker", LeaseLost, NotFound)
    def target_previewed(self, holder: Holder, run_id: int, items: Sequence[Previewed]) -> BatchRunRow | DetentError:
        """Record the previews of these targets. Only by the holder of a job of the run. A preview that is recorded
        stays. The preview of the run is complete (`previewed_at`) when its plan is and each target has a preview.
        `NotFound`."""
        ...

    # -- actions -----------------------------------------------------------------------------------------------

    @verb("client", PreviewNotReady, InvalidTransition, RunBusy, InvalidInput, NotFound, IdConflict)
    def batch_act(self, item: NewAction, driver: NewJob) -> BatchRunRow | DetentError:
        """Begin an action: record it, move the run, and enqueue the job that carries it out.

        - `apply` moves a run from preview to queued; from applied, partial or failed it takes targets that were left
          out before.
        - `retry_failed` moves a run from partial or failed to applying.
        - `roll_back` records the request and leaves the run applied or partial (a failed run with applied targets
          becomes partial). Requested again after reverts have failed, it retries those.

        Refused, and then nothing is changed: `PreviewNotReady` if the preview is not complete, or targets could not be
        previewed and are not left out; `InvalidTransition` from another state; `RunBusy` while another action is
        outstanding, targets are being applied or reverted, or after a rollback was requested; `InvalidInput` if refs
        are unknown or in another state, or nothing is left to do. `NotFound`, `IdConflict`. The same id again is the
        same action.
        """
        ...

    @verb("worker", NotFound, reads=True)
    def batch_portion(self, action_id: int, limit: int) -> ActionPortion | DetentError:
        """Return the next `limit` targets that an action has to move. `NotFound`."""
        ...

    @verb("worker", LeaseLost, TransitionRace, InvalidInput, NotFound)
    def batch_step(
        self, holder: Holder, action_id: int, from_cursor: int, to_cursor: int, jobs: Sequence[TargetJob], last: bool
    ) -> Stepped | DetentError:
        """Move the targets of a portion and the action's cursor in one transaction. `last` ends the action.

        Targets with a job in `jobs` get it; failed targets, and failed reverts, are retried by the job that they have.
        Only by the holder of the action's job. If the cursor is at `to_cursor` already, or the action has ended,
        nothing is changed, and the answer is its progress; at any other cursor: `TransitionRace`. `InvalidInput` if a
        target needs a job and has none in `jobs`, or has one and needs none. `NotFound`.
        """
        ...

    @verb("worker", LeaseLost, NotFound)
    def batch_stop(self, holder: Holder, run_id: int, reason: str, driver: NewJob) -> BatchRunRow | DetentError:
        """Stop a run after a critical error: end its open action, and enqueue `driver`, the job that cancels targets
        that have not begun. When the running ones have ended, the run has failed with that reason.

        Only by the holder of a job of the run. A run that was stopped before is left as it is. `NotFound`.
        """
        ...

    @verb("client", InvalidTransition, NotFound, IdConflict)
    def batch_cancel(
        self, run_id: int, driver: NewJob, actor: str, reason: str | None = None
    ) -> BatchRunRow | DetentError:
        """Cancel a run in preview, queued or applying: end its open action, and record who cancels it and why.

        If no target is queued or applying, the run is cancelled at once. Otherwise it is cancelled when these have
        ended. `driver` is the job that cancels what waits: targets that have not begun, or the jobs of an unfinished
        preview; it is enqueued if there may be any. A run whose cancel was requested before is left as it is. Other
        states: `InvalidTransition`. `NotFound`, `IdConflict`.
        """
        ...

    @verb("worker", LeaseLost, NotFound)
    def target_conflict(self, holder: Holder, run_id: int, found: str) -> BatchRunRow | DetentError:
        """Record that the target of the caller's job was changed by others since its preview. `found` is its current
        value, as JSON. `NotFound`."""
        ...

    # -- reconciliation ----------------------------------------------------------------------------------------

    @verb("worker", reads=True)
    def reconcile_due(self, limit: int) -> list[BatchRunRow]:
        """Return up to `limit` runs whose reconciliation is due, the longest due first. Planned are 5 minutes after a
        run was applied or partial, 1 hour after, and daily for 30 days. Missed ones are made up for once."""
        ...

    @verb("client", TransitionRace, InvalidTransition, RunBusy, NotFound)
    def reconcile_begin(
        self, run_id: int, planned: int | None, job: NewJob, actor: str
    ) -> ReconciliationRow | DetentError:
        """Begin to compare all applied targets with the world, and enqueue the job that does it.

        `planned` is the run's `reconcile_no` if the plan asks for it; `TransitionRace` if another caller has begun that
        one, or it is not due. None is a request by hand, at any time. While a reconciliation is under way (its job is
        pending or running), the answer is that one, and nothing is begun. A run that is neither applied nor partial:
        `InvalidTransition`; after a rollback was requested: `RunBusy`. `NotFound`.
        """
        ...

    @verb("worker", LeaseLost, TransitionRace, NotFound)
    def reconcile_record(
        self,
        holder: Holder,
        run_id: int,
        no: int,
        from_cursor: int,
        to_cursor: int,
        checked: int,
        mismatches: Sequence[Observed],
        last: bool,
    ) -> ReconciliationRow | DetentError:
        """Record what was found of the applied targets in (from_cursor, to_cursor]. Only by the holder of its job.

        Open mismatches of targets that are not among `mismatches` are resolved. If the cursor is at `to_cursor`
        already, or the reconciliation has ended, nothing is changed; at any other cursor: `TransitionRace`. `NotFound`.
        """
        ...

    # -- reading -----------------------------------------------------------------------------------------------

    @verb("viewer")
    def batch_get(self, run_id: int) -> BatchRunRow | None:
        """Return a run, None if it does not exist."""
        ...

    @verb("viewer")
    def batch_list(self, chosen: BatchFilter, before_id: int | None = None, limit: int = 100) -> list[BatchRunRow]:
        """Return runs that fit, newest first, with ids below `before_id`."""
        ...

    @verb("viewer")
    def target_list(
        self,
        run_id: int,
        *,
        state: str | None = None,
        refs: Sequence[str] | None = None,
        changed: bool | None = None,
        after_n: int = 0,
        limit: int = 1000,
    ) -> list[TargetRow]:
        """Return targets of a run that fit, in the order of the plan, after number `after_n`."""
        ...

    @verb("viewer")
    def mismatch_list(
        self, run_id: int, *, open_only: bool = True, after_n: int = 0, limit: int = 1000
    ) -> list[MismatchRow]:
        """Return mismatches by target number, then by reconciliation, after target `after_n`."""
        ...

    @verb("viewer")
    def reconciliation_list(self, run_id: int, limit: int = 100) -> list[ReconciliationRow]:
        """Return the reconciliations of a run, newest first."""
        ...

    # -- retention ---------------------------------------------------------------------------------------------

    @verb("worker")
    def batch_prune(self, before: datetime, after_id: int, limit: int, actor: str) -> Pruned:
        """Read the next `limit` runs after `after_id`, and delete those that last changed before `before`, with their
        targets. `job_prune` deletes their jobs afterwards; it keeps the jobs of a run that exists. Runs that have work
        or a planned reconciliation are kept."""
        ...
