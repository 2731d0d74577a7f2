"""The contract's verbs of batch runs: a change to many targets that a person reads before it is applied.

The words are those of `contract`, which has these verbs too. Whoever works on a run does so in jobs of the run
(`run_id` of a job is the run's id): one makes the plan, some compute the preview, one moves the targets of an action,
and each target has one that applies it and, once it is to be undone, one that reverts it.

A target follows its job, in the transaction that moves the job, whichever verb that is: pending is queued, running is
applying, succeeded is applied, at rest otherwise is failed. A revert job that succeeds makes its target rolled_back.
The run follows its targets in the same transaction: from queued to applying with the first that is taken up; to
applied, partial or failed when no target is queued or applying and no action outstanding; from partial or failed back
to applying when a failed target is tried again, also where somebody retries its dead letter; to rolled_back when a
requested rollback has reverted all that was applied. Each move of a run is on record. What was asked to be rolled back
is not retried any more: the database refuses it."""

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
    BatchFilter,
    BatchRunRow,
    Holder,
    MismatchRow,
    NewAction,
    NewBatchRun,
    Observed,
    Portion,
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
        """A run in state preview, without targets yet, and the job that makes its plan. The same again is the same run;
        an id that belongs to something else: `IdConflict`."""
        ...

    @verb("worker", LeaseLost, DuplicateTarget, InvalidInput, RunBusy, NotFound)
    def target_add(
        self, holder: Holder, run_id: int, first_n: int, refs: Sequence[str], preview: NewJob | None, last: bool
    ) -> BatchRunRow | DetentError:
        """Targets `first_n` (the first of a run is 1) and following, with the job that computes their preview. `last`:
        all are known now.

        By the holder of the plan's job. What is there already under the same number is passed over, so that a plan can
        be made again from its beginning. A ref that is there under another number, or twice in one call:
        `DuplicateTarget`; a number that another ref has, or that is not the next: `InvalidInput`; a run whose plan is
        complete takes no others: `RunBusy`. `NotFound`.
        """
        ...

    @verb("worker", LeaseLost, NotFound)
    def target_previewed(self, holder: Holder, run_id: int, items: Sequence[Previewed]) -> BatchRunRow | DetentError:
        """What the previews of these targets came to, by the holder of a job of the run. What is on record already
        stays. The preview is complete (`previewed_at`) once the plan is and each target has its answer. `NotFound`."""
        ...

    # -- actions -----------------------------------------------------------------------------------------------

    @verb("client", PreviewNotReady, InvalidTransition, RunBusy, InvalidInput, NotFound, IdConflict)
    def batch_act(self, item: NewAction, driver: NewJob) -> BatchRunRow | DetentError:
        """Begin an action: the run moves, where it does, and the action is on record with the job that carries it out.

        `apply` takes a run from preview to queued; later, from applied, partial or failed, it takes what was left out.
        `retry_failed` takes it from partial or failed to applying; `roll_back` leaves it applied or partial (a failed
        run with applied targets becomes partial) and records the request; asked again after reverts have given up, it
        tries those again. Refused, and then nothing is changed: `PreviewNotReady` before the preview is complete, or
        where targets could not be previewed and are not left out; `InvalidTransition` from another state; `RunBusy`
        while another action is outstanding, targets are still being applied or reverted, or after a rollback was asked
        for; `InvalidInput` where refs are unknown, or the action is not for them, or nothing is left to do. `NotFound`,
        `IdConflict`. The same id again is the same action."""
        ...

    @verb("worker", NotFound, reads=True)
    def batch_portion(self, action_id: int, limit: int) -> Portion | DetentError:
        """The next up to `limit` targets that an action has to move. `NotFound`."""
        ...

    @verb("worker", LeaseLost, TransitionRace, InvalidInput, NotFound)
    def batch_step(
        self, holder: Holder, action_id: int, from_cursor: int, to_cursor: int, jobs: Sequence[TargetJob], last: bool
    ) -> Stepped | DetentError:
        """Move the targets of a portion, and the action's cursor with them, in one transaction: those with a job here
        get it; failed targets, or reverts that gave up, are retried by the job they have. `last` ends the action.

        By the holder of the action's job. Where the cursor is at `to_cursor` already, or the action has ended, nothing
        is changed and the answer is how far it is; anywhere else: `TransitionRace`. `InvalidInput` where a target that
        needs a job has none here, or the other way round. `NotFound`.
        """
        ...

    @verb("worker", LeaseLost, NotFound)
    def batch_stop(self, holder: Holder, run_id: int, reason: str, driver: NewJob) -> BatchRunRow | DetentError:
        """Stop a run after a critical error: its open action ends, no more targets are handed out, and `driver` is the
        job that cancels what has not begun. When what is in flight has ended, the run has failed with that reason.

        By the holder of a job of the run. A run that was stopped before is left as it is. `NotFound`.
        """
        ...

    @verb("worker", LeaseLost, NotFound)
    def target_conflict(self, holder: Holder, run_id: int, found: str) -> BatchRunRow | DetentError:
        """Record that a target was refused because others have changed it: `found` is what it is now, as JSON. It is
        the target of the job that the caller holds. `NotFound`."""
        ...

    # -- reconciliation ----------------------------------------------------------------------------------------

    @verb("worker", reads=True)
    def reconcile_due(self, limit: int) -> list[BatchRunRow]:
        """Up to `limit` runs at whose targets it is time to look, the longest due first. By plan that is 5 minutes
        after a run came to rest applied or partial, 1 hour after, and daily for 30 days; what was missed is made up for
        once."""
        ...

    @verb("client", TransitionRace, InvalidTransition, RunBusy, NotFound)
    def reconcile_begin(
        self, run_id: int, planned: int | None, job: NewJob, actor: str
    ) -> ReconciliationRow | DetentError:
        """A look at all applied targets, by a job. `planned` is the run's `reconcile_no` for a look by plan: where it
        is not that any more, or not due, somebody else was first: `TransitionRace`. None is by hand, at any time.

        While one is under way (its job is pending or running), the answer is that one, and nothing is begun. Runs that
        are neither applied nor partial: `InvalidTransition`; after a rollback was asked for: `RunBusy`. `NotFound`.
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
        """What was found of the applied targets in (from_cursor, to_cursor], by the holder of its job. Those not named
        as mismatches are right: what was open of them is resolved. Where the cursor is at `to_cursor` already, or the
        look has ended, nothing is changed; anywhere else: `TransitionRace`. `NotFound`."""
        ...

    # -- looking -----------------------------------------------------------------------------------------------

    @verb("viewer")
    def batch_get(self, run_id: int) -> BatchRunRow | None: ...

    @verb("viewer")
    def batch_list(self, chosen: BatchFilter, before_id: int | None = None, limit: int = 100) -> list[BatchRunRow]:
        """Runs that fit, the newest first, below `before_id`."""
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
        """Targets of a run that fit, in the order of the plan, after `after_n`."""
        ...

    @verb("viewer")
    def mismatch_list(
        self, run_id: int, *, open_only: bool = True, after_n: int = 0, limit: int = 1000
    ) -> list[MismatchRow]:
        """Targets found not to be what they should, by number, then look; after target `after_n`."""
        ...

    @verb("viewer")
    def reconciliation_list(self, run_id: int, limit: int = 100) -> list[ReconciliationRow]:
        """The looks at a run, the newest first."""
        ...

    # -- retention ---------------------------------------------------------------------------------------------

    @verb("worker")
    def batch_prune(self, before: datetime, after_id: int, limit: int, actor: str) -> Pruned:
        """Look at the next `limit` runs after `after_id`, and delete those that came to rest (or, never applied, were
        last touched) before then, with their targets; their jobs are for `job_prune` after that, which leaves those of
        a run that is there. Runs that are still to be looked at, or at work, stay."""
        ...
