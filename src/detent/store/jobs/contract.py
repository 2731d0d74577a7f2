"""The verbs that take a job from the queue to its end.

The terms (*now*, *holder*) and the rules by which an attempt ends are those of `detent.store.contract`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, Protocol, TypedDict, Unpack

from detent.errors import (
    AlreadyCommitted,
    DetentError,
    IdConflict,
    InvalidTransition,
    KeyConflict,
    LeaseLost,
    NotFound,
    NotUnknown,
    PartOfRun,
    RunBusy,
)
from detent.model.records import (
    Abort,
    Aborted,
    Appended,
    Cancelled,
    Claimed,
    Commit,
    Committed,
    EffectBegun,
    EffectEvidence,
    Enqueued,
    Finish,
    Finished,
    Moved,
    NewEvent,
    NewJob,
    Renewal,
    Started,
)
from detent.model.service_records import IdentityRow
from detent.store.verb import verb

__all__ = ["ClaimTerms", "JobVerbs"]


class ClaimTerms(TypedDict):
    """The arguments of `job_claim`. None for queues or tenants is any.

    `versions`: for each task, the versions under which a workflow may have begun that is claimed. A workflow that has
    recorded nothing, and a job of any other kind, is claimed whatever they say. None is any version."""

    lease_id: int
    worker: str
    queues: Sequence[str] | None
    tasks: Sequence[str]
    limit: int
    lease: float
    tenants: NotRequired[Sequence[str] | None]
    after_tenant: NotRequired[str | None]
    versions: NotRequired[Mapping[str, Sequence[int]] | None]


class JobVerbs(Protocol):
    """Entering, claiming, ending and moving jobs."""

    # -- entering ----------------------------------------------------------------------------------------------

    @verb("client")
    def ids_reserve(self, count: int) -> int:
        """Reserve `count` consecutive ids, which are never given again, and return the first. Jobs and leases share
        one sequence of ids."""
        ...

    @verb("client", IdConflict, KeyConflict)
    def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        """Accept jobs in state pending.

        An id that exists answers `Enqueued(id, created=False)` if task, payload and nonce are the same, else
        `IdConflict`. A key that is taken and not expired answers the job that holds it, created=False, if the
        fingerprint is the same, else `KeyConflict`; a key seen earlier in the same call counts as taken. Two callers
        that race for one key get the same job; if the transaction of the first rolls back, the second creates the job.
        A refused item refuses every item of its group with the same error. due_at is never before now.
        """
        ...

    # -- for the holder of an attempt --------------------------------------------------------------------------

    @verb("worker")
    def job_claim(self, **terms: Unpack[ClaimTerms]) -> list[Claimed]:
        """Claim up to `limit` ready jobs of these tasks, queues, tenants and versions, but none of paused queues, and
        none whose expires_at has passed.

        Within a tenant: higher priority first, then first in, first out. Tenants take turns, one job each, in
        alphabetical order starting after `after_tenant`; if more than 100 lanes have ready jobs, in an order that the
        database chooses. Each job goes to one caller only: state running, attempt + 1, leased now, and a lease row
        `lease_id` that expires `lease` seconds from now and names the jobs. No lease row is written if nothing was
        claimed. A key held until the first claim is released. No claim waits for another: rows that others have locked
        are skipped. Only claims under one limit run one after the other, and none takes more than the limit has room
        for. The number of rows read is bounded, however long the queue is.
        """
        ...

    @verb("worker", reads=True)
    def claim_find(self, lease_id: int) -> list[Claimed]:
        """Return the jobs still held under a lease, for a claim whose answer was lost."""
        ...

    @verb("worker", LeaseLost)
    def job_start(self, items: Sequence[tuple[int, int]]) -> list[Started | DetentError]:
        """Record that (job, attempt) is in progress. The first start counts. Only by the holder."""
        ...

    @verb("worker", LeaseLost, AlreadyCommitted)
    def effect_begin(self, job_id: int, attempt: int, evidence: EffectEvidence) -> EffectBegun | DetentError:
        """Record, before the attempt acts outside of this database, who can tell afterwards whether the effect has
        happened: the task's `probe`, or a `marker` in another database. If the worker dies, the rules for attempts that
        end without success depend on it. Starts the attempt. Only by the holder; `AlreadyCommitted` if any attempt has
        committed the job."""
        ...

    @verb("worker")
    def lease_renew(
        self, lease_ids: Sequence[int], lease: float, begun: Mapping[int, float] | None = None
    ) -> list[Renewal]:
        """Extend leases to `lease` seconds from now. An expired lease may be renewed until it is reaped.

        `begun`: jobs under these leases whose function was called, and how many seconds after the claim; they are
        started at that time unless they have started before. Jobs that others have locked are skipped, for that and
        for `cancel_requested`."""
        ...

    @verb("worker", reads=True)
    def cancel_find(self, items: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return those of these (job, attempt) that run and have a cancel request, by job. It locks nothing and costs a
        look-up for each item, so a worker may ask once a second about what it runs."""
        ...

    @verb("worker", LeaseLost, NotFound)
    def event_append(self, items: Sequence[NewEvent]) -> list[Appended | DetentError]:
        """Append events; seq counts from 1 within the job, without gaps.

        With an attempt, only by its holder, and it starts the attempt (E2). Without one, to any job that exists, else
        `NotFound`. A key already used in this job answers the first event, created=False. Without a key, an event equal
        in level, message and payload (and attempt) to one without key of the last 10 seconds is the same event (E3).
        """
        ...

    @verb("worker", LeaseLost, AlreadyCommitted, IdConflict, KeyConflict)
    def job_commit(self, item: Commit) -> Committed | DetentError:
        """Mark the attempt committed, and enqueue its intents in the same transaction. Only by the holder.

        `AlreadyCommitted` if any attempt has committed the job. A refused intent refuses the commit.
        """
        ...

    @verb("worker", LeaseLost)
    def job_finish(self, items: Sequence[Finish], worker: str) -> list[Finished | DetentError]:
        """End attempts as done; the job succeeds. By the holder, or by anyone if the attempt is committed.

        Commits in the same statement if the attempt was not committed before; then `result` is stored (a result stored
        by the commit is kept unless this one has its own). Finishing again gives the same answer again.
        `begun_after`: seconds from the claim to `started_at`, which is never after now or after a recorded start.
        """
        ...

    @verb("worker", LeaseLost, AlreadyCommitted)
    def job_abort(self, items: Sequence[Abort], worker: str) -> list[Aborted | DetentError]:
        """End attempts that did not succeed, by the rules of `detent.store.contract`. Only by the holder.

        Aborting an attempt again with the same outcome gives the same answer again. A caller may not give the outcomes
        done and expired. `begun_after` is as in `job_finish`, and is applied before the rules.
        """
        ...

    # -- explicit moves ----------------------------------------------------------------------------------------

    @verb("client", AlreadyCommitted, InvalidTransition, NotFound)
    def job_cancel(
        self, ids: Sequence[int], actor: str, reason: str | None = None, *, undo: bool = True
    ) -> list[Cancelled | DetentError]:
        """Cancel jobs. Pending: cancelled at once. Running: the request is recorded (the first one counts), and its
        worker learns of it by `cancel_find` or the next renewal; an ops run, whose holder does not renew, is cancelled
        at once, and its holder is refused from then on. Cancelled: no-op. Committed or succeeded: `AlreadyCommitted`.
        Other states: `InvalidTransition`; no such job: `NotFound`.

        A workflow that is pending and has steps to undo is due at once, with the request on record: a worker undoes
        them and ends it as cancelled. Without `undo` it is cancelled at once, a running one undoes nothing, and a
        reason is required (raises `InvalidInput`); such a request counts even if it is the second one. The children of
        a job, and theirs, are cancelled by `tree_cancel_step`, except detached ones."""
        ...

    @verb("client", InvalidTransition, NotFound, PartOfRun, RunBusy)
    def job_retry(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        """Move failed, quarantined and cancelled jobs back to pending with all their attempts (spared = attempt), due
        now or at their due time if that is later; an expiry that has passed is dropped. Pending: no-op. Other states:
        `InvalidTransition`; the job of a target whose run is being rolled back: `RunBusy`; a job that plans, fetches or
        consolidates a pipeline run: `PartOfRun`; no such job: `NotFound`."""
        ...

    @verb("client", InvalidTransition, NotFound)
    def job_discard(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        """Cancel quarantined or failed jobs. Cancelled: no-op. `InvalidTransition`, `NotFound`."""
        ...

    @verb("admin", InvalidTransition, NotFound)
    def job_force(self, job_id: int, to_state: str, actor: str, reason: str) -> Moved | DetentError:
        """Move a job along a transition declared as `force`; actor and reason are required and the record is marked.
        To succeeded: committed_at is set if it was not. Same state: no-op. Not declared: `InvalidTransition`."""
        ...

    @verb("admin", InvalidTransition, NotFound, NotUnknown)
    def effect_settle(
        self, job_id: int, done: bool, actor: str, reason: str, result: str | None = None
    ) -> Moved | DetentError:
        """Record what a person found out about a job that is quarantined as unknown; actor and reason are required.

        Done: succeeded, with that result. Not done: pending, due now, with all attempts, and no probe is asked about
        earlier attempts. Other states: `InvalidTransition`; quarantined for another reason: `NotUnknown`; no such job:
        `NotFound`. Settled as done already: no-op.
        """
        ...

    @verb("client", InvalidTransition, NotFound)
    def job_move(
        self, ids: Sequence[int], queue: str | None, priority: int | None, actor: str, reason: str | None = None
    ) -> list[Moved | DetentError]:
        """Move pending jobs to another queue or priority (None: unchanged). The due time stays; each move is recorded.
        Nothing to change: no-op. Other states: `InvalidTransition`; no such job: `NotFound`."""
        ...

    # -- queues ------------------------------------------------------------------------------------------------

    @verb("admin")
    def queue_pause(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        """Keep claims out of a queue until it is resumed. Pausing a paused queue is a no-op. Recorded."""
        ...

    @verb("admin")
    def queue_resume(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        """Let claims into a queue again. Recorded."""
        ...

    # -- the identity of the database, from which effect keys are made -----------------------------------------

    @verb("viewer")
    def identity_list(self) -> list[IdentityRow]:
        """Return every identity the database has had, oldest first. The first was made together with its schema."""
        ...

    @verb("admin")
    def identity_renew(self, actor: str, reason: str | None = None) -> IdentityRow:
        """Give the database a new random identity, for the ids that are reserved from now on. Recorded."""
        ...
