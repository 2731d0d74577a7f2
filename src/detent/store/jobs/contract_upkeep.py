"""The verbs of services: what workers do with jobs besides running them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, Unpack

from detent.errors import DetentError, LeaseLost, NotFound
from detent.model.records import (
    ClaimedEach,
    EachDone,
    Finished,
    JobPlace,
    JobsPruned,
    Moved,
    Prunable,
    Reaped,
    ResultsDropped,
)
from detent.model.service_records import JobsLeft, KeysForgotten, RecoveryRow, SilentRow, TaskSecrets, TaskTimes
from detent.store.jobs.contract import ClaimTerms
from detent.store.verb import verb

__all__ = ["JobUpkeepVerbs"]


class JobUpkeepVerbs(Protocol):
    """Promotion, expiry, reaping, silent jobs, failure hooks and retention."""

    @verb("worker")
    def job_promote(self, limit: int) -> int:
        """Move up to `limit` waiting jobs that are due, and that no limit blocks, to ready; return how many."""
        ...

    @verb("worker")
    def job_expire(self, limit: int) -> list[int]:
        """Cancel up to `limit` pending jobs whose expires_at has passed (trigger expire, actor system); return their
        ids."""
        ...

    @verb("worker")
    def lease_reap(self, limit: int, grace: float | None = None) -> Reaped:
        """Remove up to `limit` expired leases: uncommitted jobs end as expired, committed ones become succeeded.

        With `grace`, leases that expired while no worker was seen (`worker_seen`) for more than five seconds stay for
        `grace` seconds after the next worker was seen: all workers were down, or the clock jumped and the holders are
        alive. The statement that acts checks the expiry again. Jobs that others have locked are skipped, and their
        lease row stays until a later pass; a lease row is deleted only if no running job names it.
        """
        ...

    @verb("worker", LeaseLost, NotFound)
    def job_recover(self, ids: Sequence[int]) -> list[Finished | DetentError]:
        """Move committed jobs to succeeded, by any caller, as often as it likes. Not committed: `LeaseLost`."""
        ...

    # -- row by row, if a damaged row makes a whole batch fail -------------------------------------------------

    @verb("worker")
    def job_claim_each(self, skip: Sequence[int], **terms: Unpack[ClaimTerms]) -> ClaimedEach:
        """Do what `job_claim` does, job by job and without those in `skip`.

        A row in the queue without a pending job is deleted and reported. A job that has a committed attempt on record
        does not run again: it becomes succeeded, on record, and is reported. A job whose row refuses the claim stays
        in the queue and is reported. All others are claimed, in order.
        """
        ...

    @verb("worker")
    def job_promote_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        """Do what `job_promote` does, row by row and without the jobs in `skip`. A row that cannot be moved stays and
        is reported; all others are moved."""
        ...

    @verb("worker")
    def job_expire_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        """Do what `job_expire` does, row by row and without the jobs in `skip`. A job that cannot be cancelled stays
        and is reported; all others are cancelled."""
        ...

    @verb("worker")
    def lease_reap_each(self, limit: int, skip: Sequence[int], grace: float | None = None) -> Reaped:
        """Do what `lease_reap` does, job by job and without the leases in `skip`. A job that cannot be ended stays with
        its lease and is reported; all others are ended."""
        ...

    # -- silent jobs -------------------------------------------------------------------------------------------

    @verb("viewer")
    def job_silent(
        self,
        queue: str | None,
        stale_after: float | None,
        stalled_after: float | None,
        limit: int,
        lease_ids: Sequence[int] | None = None,
    ) -> list[SilentRow]:
        """Return jobs in flight (of that queue, under these leases; None is any) under a valid lease that show no sign
        of life, the longest silent first: not started `stale_after` seconds after the claim, or without an event for
        `stalled_after` seconds since they started. None is never; the times of a task (`task_times_put`) take
        precedence. Jobs that are committed or have a cancel request are left out."""
        ...

    @verb("client")
    def task_times_put(self, items: Sequence[TaskTimes]) -> None:
        """Store the times that tasks declare. A task that declares none (any more) gets the defaults. Repeating it is a
        no-op."""
        ...

    @verb("viewer")
    def task_times_list(self) -> list[TaskTimes]:
        """Return the tasks that declare times, by name."""
        ...

    @verb("client")
    def task_secrets_put(self, items: Sequence[TaskSecrets], replace: bool) -> None:
        """Record the secret fields of tasks. Those that are on record stay, or with `replace` are replaced."""
        ...

    @verb("viewer")
    def task_secrets_list(self) -> list[TaskSecrets]:
        """Return the tasks that have secret fields, by name."""
        ...

    @verb("admin")
    def recovery_set(
        self,
        queue: str,
        stale_after: float | None,
        stalled_after: float | None,
        actor: str,
        reason: str | None = None,
    ) -> Moved:
        """Allow silent jobs of a queue to be stopped and run again without approval after these numbers of seconds;
        None for both requires approval. Recorded (entity `recovery`: `automatic`, `approval`). Repeating it is a
        no-op."""
        ...

    @verb("viewer")
    def recovery_list(self) -> list[RecoveryRow]:
        """Return the queues that need no approval, by name."""
        ...

    # -- failures that the application has not been told of ----------------------------------------------------

    @verb("worker")
    def failure_report_take(self, tasks: Sequence[str], limit: int, seconds: float) -> list[tuple[int, int]]:
        """Take up to `limit` failures of these tasks whose failure hooks have not run: job and attempt, by id.

        A failure is an attempt that brought its job to quarantined or failed; its ending puts it on the list in the
        same transaction. Other ends are on it if they were put there, or if their task is announced (`announced_put`).
        No other caller gets it for `seconds`; after that it is free again if it was not done.
        """
        ...

    @verb("worker")
    def failure_report_put(self, items: Sequence[tuple[int, int, str]]) -> None:
        """Put attempts on the list whose end is to be told of, failure or not: job, attempt and task. They may be
        taken before they have ended. Those that are on the list stay as they are."""
        ...

    @verb("worker")
    def failure_report_keep(self, failures: Sequence[tuple[int, int]], seconds: float) -> None:
        """Keep failures that were taken for `seconds` from now. Those that are done already stay done."""
        ...

    @verb("worker")
    def failure_report_done(self, failures: Sequence[tuple[int, int]]) -> None:
        """Remove failures from the list: their hooks have run. Repeating it is a no-op."""
        ...

    # -- retention ---------------------------------------------------------------------------------------------

    @verb("worker")
    def job_prune(
        self, before: datetime, after: JobPlace | None, limit: int, actor: str, states: Sequence[str] | None = None
    ) -> JobsPruned:
        """Delete jobs that finished before `before` (of `states`, None is any) with all their records. Reads up to
        `limit` jobs that were created before `before`, in the order of their creation from after `after` on (None is
        the first); newer jobs cost nothing. The horizon only moves forward and is recorded; keys stay."""
        ...

    @verb("worker", reads=True)
    def job_prunable(
        self, before: datetime, after: JobPlace | None, limit: int, states: Sequence[str] | None = None
    ) -> Prunable:
        """Return the jobs that `job_prune` would delete. In a transaction, nothing is added to their records until it
        ends."""
        ...

    @verb("worker")
    def job_drop(self, ids: Sequence[int], before: datetime, actor: str, reason: str | None = None) -> int:
        """Delete those of these jobs that `job_prune` would delete; return how many. The horizon is recorded. With a
        reason, a line of the record of the entity (`database`, `retention`) says who deleted how many jobs, and why."""
        ...

    @verb("worker")
    def result_drop(self, after: JobPlace | None, limit: int) -> ResultsDropped:
        """Drop the results of succeeded jobs that are older than their task's `result_ttl`; the jobs stay. Reads jobs
        as `job_prune` does, without those that are younger than the shortest `result_ttl`."""
        ...

    @verb("worker", reads=True)
    def job_left(
        self,
        tasks: Sequence[str],
        queues: Sequence[str] | None,
        versions: Mapping[str, Sequence[int]] | None = None,
        *,
        after: int = 0,
        limit: int = 10_000,
    ) -> JobsLeft:
        """Return whether there is anything left to do for a worker that claims with these terms: a job that is ready or
        running, or one among the next `limit` pending jobs with ids after `after` that is due later or held back by a
        limit. Parked workflows, those that began under other versions, and nodes that wait for others are not waited
        for."""
        ...

    @verb("worker")
    def key_expire(self, limit: int) -> int:
        """Delete up to `limit` keys whose time to live is over; return how many."""
        ...

    @verb("worker")
    def key_forget(self, after: tuple[str, str], limit: int) -> KeysForgotten:
        """Delete keys without a time to live whose job is gone, reading up to `limit` keys after (tenant, key)."""
        ...
