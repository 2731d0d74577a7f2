"""The contract's verbs around the jobs: who works, and what is done besides working.

The words are those of `contract`, which has these verbs too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, Unpack

from detent.errors import DetentError, InvalidTransition, NotFound
from detent.model.records import ClaimedEach, EachDone, Enqueued, Moved, NewJob, Prunable, Reaped, ResultsDropped
from detent.model.service_records import (
    Agenda,
    DeadGroup,
    DeclarationRow,
    Declared,
    DeclaredKind,
    Fire,
    KeysForgotten,
    LimitsPruned,
    LinesPruned,
    NewOperation,
    NewSchedule,
    OperationRow,
    QueueRow,
    RecoveryRow,
    ScheduleRow,
    SilentRow,
    TaskTimes,
    WorkerRow,
    WorkerSeen,
)
from detent.store.ahead import ClaimTerms
from detent.store.words import JobFilter, Verb

__all__ = ["KEEPING", "KeepingVerbs"]


class KeepingVerbs(Protocol):
    """Workers, the services that they share, schedules, and what is done to many jobs at once."""

    # -- workers -----------------------------------------------------------------------------------------------

    def worker_seen(self, seen: WorkerSeen) -> Agenda:
        """A worker lives, now, and hears what there is to do besides jobs. The first time it is put on the list, and
        workers not seen for a day are forgotten. Nothing is decided by it: leases decide."""
        ...

    def worker_gone(self, worker_id: int) -> None:
        """A worker has ended and says so; it leaves the list."""
        ...

    def worker_list(self, within: float) -> list[WorkerRow]:
        """The workers seen in the last `within` seconds, by name and id."""
        ...

    def cancel_find(self, items: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return those of these (job, attempt) that run and have a cancel request, by job. It locks nothing and costs a
        look-up for each item, so a worker may ask once a second about what it runs."""
        ...

    # -- services: one at a time -------------------------------------------------------------------------------

    def service_take(self, name: str, holder: int, seconds: float) -> int | None:
        """Do a service for `seconds` from now: the term, or None where somebody else does it.

        The one who has it keeps it, and its term. A lease that ran out may be taken by anybody, which begins a new
        term: terms only grow, so a holder that slept sees that it was somebody else's turn in between.
        """
        ...

    def service_drop(self, name: str, holder: int) -> None:
        """Let others have a service at once. Whoever does not have it changes nothing."""
        ...

    # -- what is declared in code ------------------------------------------------------------------------------

    def declaration_put(self, kind: DeclaredKind, name: str, fingerprint: str, again: bool) -> Declared:
        """A program declares a schedule or a limit. `new`: it counts from now on, and the caller writes what it says in
        the same transaction. `same`: it is the newest already. `replaced`: another declaration has replaced it, so the
        program runs older code; with `again` it counts again. An empty fingerprint: the thing was removed. The last 50
        declarations of a name are kept."""
        ...

    def declaration_list(self) -> list[DeclarationRow]:
        """The newest declaration of each thing that was not removed, by kind and name."""
        ...

    # -- schedules ---------------------------------------------------------------------------------------------

    def schedule_put(self, item: NewSchedule) -> ScheduleRow:
        """Make a schedule, or change the one of that name; recorded. Its next tick stays as it is unless cron or zone
        changed, and so does a pause. The same again changes nothing."""
        ...

    def schedule_remove(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """No tick of it comes any more; jobs that it made stay. Recorded. `NotFound`."""
        ...

    def schedule_pause(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """No tick comes until it is resumed. Pausing a paused one changes nothing. Recorded. `NotFound`."""
        ...

    def schedule_resume(
        self, name: str, next_at: datetime, actor: str, reason: str | None = None
    ) -> Moved | DetentError:
        """Ticks come again, the first at `next_at`: those of the pause are not made up for. Recorded. `NotFound`."""
        ...

    def schedule_run(self, name: str, job: NewJob, actor: str, reason: str | None = None) -> Enqueued | DetentError:
        """Enqueue a job of a schedule out of turn, active or paused, in one transaction with the line that says so. Its
        ticks stay as they are. `created` is False if an equal job waits under the same key. `NotFound`."""
        ...

    def schedule_list(self) -> list[ScheduleRow]:
        """Every schedule, by name."""
        ...

    def schedule_due(self, limit: int) -> list[ScheduleRow]:
        """Up to `limit` schedules whose tick has come and that are not paused, the longest due first."""
        ...

    def schedule_fire(
        self, name: str, expected: datetime, fires: Sequence[Fire], next_at: datetime
    ) -> list[int] | None:
        """Deal with the ticks of a schedule that stands at `expected`: enqueue their jobs and move it to `next_at`, in
        one transaction. The ids of the jobs that were made: not where an equal one waits already under the same key.
        None where somebody else was first, or it is paused or gone: then nothing was changed. A tick that was ever
        dealt with is never dealt with again."""
        ...

    def queue_list(self) -> list[QueueRow]:
        """Every queue that was ever paused, by name; also where no job is in it."""
        ...

    # -- many jobs at once -------------------------------------------------------------------------------------

    def job_count(self, chosen: JobFilter) -> int:
        """Return how many jobs fit. Exact, and no walk through the jobs at rest."""
        ...

    def counts_fold(self, limit: int) -> int:
        """Add up to `limit` moves and as many batches of succeeded jobs to the counts of jobs at rest; how many there
        were. It changes no answer: `counts` and `job_count` add up everything."""
        ...

    def job_move(
        self, ids: Sequence[int], queue: str | None, priority: int | None, actor: str, reason: str | None = None
    ) -> list[Moved | DetentError]:
        """Put pending jobs into another queue, or give them another priority (None: as it is); the due time stays, and
        each is on record. There already: nothing to do. Other states: `InvalidTransition`; no such job: `NotFound`."""
        ...

    def operation_start(self, item: NewOperation) -> OperationRow:
        """Begin to do something to all jobs there are now that fit; recorded. The same id again is the same one."""
        ...

    def operation_step(self, operation_id: int, limit: int) -> OperationRow | DetentError:
        """Look at the next `limit` jobs and do it to those that fit, as the verb of that name does, in one transaction
        with how far it is. One that is not running stays as it is. `NotFound`."""
        ...

    def operation_skip(self, operation_id: int) -> OperationRow | DetentError:
        """Pass over the next job that a step would look at, and count it as refused: for a job that makes every step
        fail. An operation that is not running, or has no job left, stays as it is. `NotFound`."""
        ...

    def operation_cancel(self, operation_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Stop it where it is: what is done stays done. Recorded. One that has ended stays as it is. `NotFound`."""
        ...

    def operation_get(self, operation_id: int) -> OperationRow | None: ...

    def operation_list(self, state: str | None = None, limit: int = 100) -> list[OperationRow]:
        """Operations (of that state), the newest first."""
        ...

    # -- dead letters ------------------------------------------------------------------------------------------

    def dead_report(self, task: str | None, queue: str | None, tenant: str | None, limit: int) -> list[DeadGroup]:
        """What dead letters (of that task, queue, tenant; None is any) died of: the largest groups of one task, queue,
        reason and kind of error first, at most `limit` of them."""
        ...

    # -- failures ----------------------------------------------------------------------------------------------

    def untold_take(self, tasks: Sequence[str], limit: int, seconds: float) -> list[tuple[int, int]]:
        """Take up to `limit` failures of these tasks that their application has not heard of: job and attempt, by id.

        A failure is an attempt that brought its job to quarantined or failed; its ending puts it on the list in the
        same transaction. No other caller gets a taken one for `seconds`; after that it is free again if it was not
        done. Ops runs are not on the list.
        """
        ...

    def untold_keep(self, failures: Sequence[tuple[int, int]], seconds: float) -> None:
        """Keep failures that were taken for `seconds` from now. Those that are done already stay done."""
        ...

    def untold_done(self, failures: Sequence[tuple[int, int]]) -> None:
        """Take failures off the list: their applications heard of them. Repeating it changes nothing."""
        ...

    # -- silence -----------------------------------------------------------------------------------------------

    def job_silent(
        self,
        queue: str | None,
        stale_after: float | None,
        stalled_after: float | None,
        limit: int,
        lease_ids: Sequence[int] | None = None,
    ) -> list[SilentRow]:
        """Jobs in flight (of that queue, under these leases; None is any) under a living lease that nothing is heard
        of, the longest silent first: not begun `stale_after` seconds after the claim, or no event for `stalled_after`
        seconds since they began. None is never; what a task says of itself (`times_put`) goes before. Not among them:
        what is committed, or was asked to stop."""
        ...

    def times_put(self, items: Sequence[TaskTimes]) -> None:
        """What these tasks say of themselves. One that says nothing (any more) is as all others. The same again changes
        nothing."""
        ...

    def times_list(self) -> list[TaskTimes]:
        """The tasks that say something, by name."""
        ...

    def result_drop(self, after_id: int, limit: int) -> ResultsDropped:
        """Drop the results of jobs that succeeded so long ago as their task says (`result_ttl`), looking at up to
        `limit` jobs with ids above `after_id`; the jobs stay."""
        ...

    def job_prunable(
        self, before: datetime, after_id: int, limit: int, states: Sequence[str] | None = None
    ) -> Prunable:
        """The jobs that `job_prune` would delete. In a transaction nothing is added to their records until it ends."""
        ...

    def job_drop(self, ids: Sequence[int], before: datetime, actor: str) -> int:
        """Delete these jobs as `job_prune` would: those that may go; how many. The horizon is recorded."""
        ...

    # -- row by row --------------------------------------------------------------------------------------------

    def job_claim_each(self, skip: Sequence[int], **terms: Unpack[ClaimTerms]) -> ClaimedEach:
        """Do what `job_claim` does, job by job and without those in `skip`, if a damaged row makes it fail.

        A row in the queue without a pending job is deleted and reported. A job that has a committed attempt on record
        does not run again: it becomes succeeded, on record, and is reported. A job whose row refuses the claim stays
        in the queue and is reported. All others are claimed, in order.
        """
        ...

    def job_promote_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        """Do what `job_promote` does, row by row and without the jobs in `skip`. A row that cannot be moved stays and
        is reported; all others are moved."""
        ...

    def job_expire_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        """Do what `job_expire` does, row by row and without the jobs in `skip`. A job that cannot be cancelled stays
        and is reported; all others are cancelled."""
        ...

    def lease_reap_each(self, limit: int, skip: Sequence[int], grace: float | None = None) -> Reaped:
        """Do what `lease_reap` does, job by job and without the leases in `skip`. A job that cannot be ended stays with
        its lease and is reported; all others are ended."""
        ...

    # -- silent jobs -------------------------------------------------------------------------------------------

    def key_expire(self, limit: int) -> int:
        """Delete up to `limit` keys whose time to live is over; how many."""
        ...

    def key_forget(self, after: tuple[str, str], limit: int) -> KeysForgotten:
        """Delete keys without a time to live whose job is gone, looking at up to `limit` keys after (tenant, key)."""
        ...

    def limit_prune(self, after: str, limit: int) -> LimitsPruned:
        """Delete limits that a template made, under which nothing runs and whose bucket is full, looking at up to
        `limit` limits with keys above `after`."""
        ...

    def log_prune(self, before: datetime, after: int, limit: int, actor: str) -> LinesPruned:
        """Delete lines of the log that belong to no job and are older than `before`, looking at up to `limit` lines
        above `after`. The newest such line of each entity stays, since it tells its state; lines of a batch or pipeline
        run go when the run is gone. Horizons from before then, but the newest, go too. The horizon is recorded."""
        ...

    def recovery_set(
        self,
        queue: str,
        stale_after: float | None,
        stalled_after: float | None,
        actor: str,
        reason: str | None = None,
    ) -> Moved:
        """Let silent jobs of a queue be stopped and run again without a person's approval, after so many seconds; with
        None for both, only with it. Recorded (entity `recovery`: `automatic`, `approval`). The same again changes
        nothing."""
        ...

    def recovery_list(self) -> list[RecoveryRow]:
        """The queues that need no approval, by name."""
        ...


KEEPING = (
    Verb("cancel_find", "worker"),
    Verb("dead_report", "viewer"),
    Verb("job_silent", "viewer"),
    Verb("times_put", "client"),
    Verb("times_list", "viewer"),
    Verb("result_drop", "worker"),
    Verb("job_prunable", "worker"),
    Verb("job_drop", "worker"),
    Verb("job_claim_each", "worker"),
    Verb("job_promote_each", "worker"),
    Verb("job_expire_each", "worker"),
    Verb("lease_reap_each", "worker"),
    Verb("key_expire", "worker"),
    Verb("key_forget", "worker"),
    Verb("limit_prune", "worker"),
    Verb("log_prune", "worker"),
    Verb("recovery_set", "admin"),
    Verb("recovery_list", "viewer"),
    Verb("queue_list", "viewer"),
    Verb("job_count", "viewer"),
    Verb("counts_fold", "worker"),
    Verb("job_move", "client", (InvalidTransition, NotFound)),
    Verb("operation_start", "client"),
    Verb("operation_step", "client", (NotFound,)),
    Verb("operation_skip", "worker", (NotFound,)),
    Verb("operation_cancel", "client", (NotFound,)),
    Verb("operation_get", "viewer"),
    Verb("operation_list", "viewer"),
    Verb("declaration_put", "client"),
    Verb("declaration_list", "viewer"),
    Verb("schedule_put", "client"),
    Verb("schedule_remove", "admin", (NotFound,)),
    Verb("schedule_pause", "admin", (NotFound,)),
    Verb("schedule_resume", "admin", (NotFound,)),
    Verb("schedule_run", "admin", (NotFound,)),
    Verb("schedule_list", "viewer"),
    Verb("schedule_due", "worker"),
    Verb("schedule_fire", "worker"),
    Verb("untold_take", "worker"),
    Verb("untold_keep", "worker"),
    Verb("untold_done", "worker"),
    Verb("worker_seen", "worker"),
    Verb("worker_gone", "worker"),
    Verb("worker_list", "viewer"),
    Verb("service_take", "worker"),
    Verb("service_drop", "worker"),
)
