"""The catalogue of verbs: everything that may be done to the record, the same on every database.

A verb is atomic. Most take many items at once and answer item by item, in the order asked: an answer is a record, or
the error that refused this item (returned, never raised), so one caller's mistake does not undo a stranger's work.
What a verb refuses, it leaves untouched.

Words used below. *now* is the database's clock, read once per verb, and never earlier than a time already on the row.
The *holder* of (job, attempt): the job is running, its `attempt` is this one, and its lease has not expired. A caller
that is not the holder gets `LeaseLost`. An attempt *ends* in one statement: the job leaves running, `ended` becomes
`attempt`, and its execution row is inserted.

How an attempt that did not succeed ends (`job_abort`, and `lease_reap` with outcome expired), first rule that fits:
  1. the job is committed                      → it is not aborted: the caller is answered `AlreadyCommitted`;
                                                  the reaper brings it to succeeded instead (outcome done).
                                                  An earlier attempt has committed, which only damage makes possible:
                                                  released, pending at once; the next claim finds the commit
  2. outcome unknown; or expired, crashed or timed_out where the task is not idempotent and the attempt had started
                                                → outcome unknown. Where the task's probe can tell (`effect_begin`),
                                                  and not fatal: pending after `delay`, and its expiry is dropped; one
                                                  attempt beyond attempts_max is granted for that, and outcome unknown
                                                  (the probe could not tell) is spared. Otherwise quarantined, reason
                                                  `unknown`
  3. a cancel was requested (outcome cancelled without one is released), or an ops run expired unbegun → cancelled
  4. outcome released, snoozed or throttled; or expired, the first five times in the life of a job, but at most
     attempts_max − 1 times                     → pending after `delay`; spared + 1, the attempt does not count
  5. fatal, or attempt − spared ≥ attempts_max  → quarantined; failed where the job has no dead letters
  6. otherwise                                  → pending after `delay` (expired: at once)
Row effects: pending gets its ready row (due now) or waiting row (due later), due_at = now + delay; quarantined gets its
dead row; states other than pending get finished_at = now. job.error is the error where the job comes to rest, and NULL
otherwise. execution.counted is false only by rules 2 and 4. execution.error keeps the error of its attempt, always.
By rule 4 a job is not charged for a worker that died or could not reach the database. The bound stops poison.
Where an attempt of the job has entered a commit block in another database (`effect_begin` with marker), rules 3 and 5
lead to outcome unknown, quarantined, reason `unknown`: the effect may be there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol, TypeVar

from detent.errors import (
    AlreadyCommitted,
    DetentError,
    IdConflict,
    InvalidTransition,
    KeyConflict,
    LeaseLost,
    NotFound,
    PartOfRun,
    RunBusy,
)
from detent.lifecycle.declare import Lifecycle
from detent.model.facts import Facts
from detent.model.records import (
    Abort,
    Aborted,
    Appended,
    Cancelled,
    Claimed,
    Commit,
    Committed,
    Enqueued,
    Finish,
    Finished,
    JobRow,
    Moved,
    NewEvent,
    NewJob,
    Pruned,
    Reaped,
    Renewal,
    RepairStep,
    Started,
    Violation,
)
from detent.model.service_records import WalkPlace, WalkStep
from detent.store.ahead import Ahead
from detent.store.alerting import ALERTING, AlertVerbs
from detent.store.batches import BATCHES, BatchVerbs
from detent.store.deadlines import HasDeadlines
from detent.store.effects import EFFECTS, EffectVerbs, KnowsIdentity
from detent.store.keeping import KEEPING, KeepingVerbs
from detent.store.limiting import LIMITING, LimitVerbs
from detent.store.log_growth import HasLog
from detent.store.looking import LOOKING, LookingVerbs
from detent.store.ops import OPS, OpsVerbs
from detent.store.pipelining import PIPELINING, HoldersBlocks, PipelineVerbs
from detent.store.words import JobFilter, JobSearch, Verb, Wake

__all__ = ["CATALOGUE", "AsyncVerbs", "JobFilter", "JobSearch", "Store", "Tx", "Verb", "Verbs", "Wake"]

T = TypeVar("T")


class Verbs(
    LookingVerbs, EffectVerbs, KeepingVerbs, LimitVerbs, AlertVerbs, BatchVerbs, OpsVerbs, PipelineVerbs, Protocol
):
    """The verbs. On a `Store` each call is a transaction of its own; inside `together` and `on` they share one."""

    # -- ids ---------------------------------------------------------------------------------------------------

    def ids_reserve(self, count: int) -> int:
        """Reserve `count` consecutive ids for ever and give the first. Ids serve jobs and leases alike."""
        ...

    # -- the way in --------------------------------------------------------------------------------------------

    def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        """Accept jobs in state pending.

        An id already there answers `Enqueued(id, created=False)` if task, payload and nonce are the same, else
        `IdConflict`. A key that is taken (and not expired) answers the job that holds it, created=False, if the
        fingerprint is the same, else `KeyConflict`; a key seen earlier in the same call counts as taken. Two callers
        that race for one key both get the same job; where the first one's transaction rolls back, the second creates
        it. A refused item refuses every item of its group with the same error. due_at is never before now.
        """
        ...

    # -- the holder's verbs ------------------------------------------------------------------------------------

    def job_claim(
        self,
        *,
        lease_id: int,
        worker: str,
        queues: Sequence[str] | None,
        tasks: Sequence[str],
        limit: int,
        lease: float,
        tenants: Sequence[str] | None = None,
        after_tenant: str | None = None,
    ) -> list[Claimed]:
        """Take up to `limit` ready jobs of these tasks (and queues, tenants; None is any), but none of paused queues,
        and none whose expires_at has passed.

        Within a tenant: higher priority first, then first in, first out. Tenants take turns, one job each, in
        alphabetical order beginning after `after_tenant`; if more than 100 lanes have ready jobs, in an order of the
        database's own. Each job is handed to one caller only: state running,
        attempt + 1, leased now, a lease row `lease_id` that expires `lease` seconds from now and names the jobs. No
        lease row is written where nothing was claimed. A key held until the first claim is given back. Nobody waits
        for anybody: rows locked by others are passed over. Only claims under one limit come one after the other, and
        none takes more than it has room for (`limiting`). The number of rows touched is bounded whatever lies ahead.
        """
        ...

    def claim_find(self, lease_id: int) -> list[Claimed]:
        """The jobs still held under a lease: for a claim whose answer was lost. Empty where there are none."""
        ...

    def job_start(self, items: Sequence[tuple[int, int]]) -> list[Started | DetentError]:
        """Put (job, attempt) in progress on record; once started it stays as it is. Only by the holder."""
        ...

    def lease_renew(
        self, lease_ids: Sequence[int], lease: float, begun: Mapping[int, float] | None = None
    ) -> list[Renewal]:
        """Extend leases to `lease` seconds from now. An expired lease that nobody has reaped may still be renewed.

        `begun`: jobs under these leases whose function was called, so many seconds after the claim; they are put in
        progress with that start, unless they have one. Jobs that others have locked are passed over for that and for
        `cancel_requested`."""
        ...

    def event_append(self, items: Sequence[NewEvent]) -> list[Appended | DetentError]:
        """Append lines; seq counts from 1 within the job, without gaps.

        With an attempt, only by its holder, and it starts the attempt if it had not started (E2). Without one, to any
        job that exists (`NotFound` otherwise). A key already used in this job answers the first line, created=False.
        Without a key, a line equal in level, message and payload (attempt too) to one appended in the last 10 seconds,
        itself without key, is the same line (E3).
        """
        ...

    def job_commit(self, item: Commit) -> Committed | DetentError:
        """Mark the attempt committed, and enqueue its intents in the same transaction. Only by the holder.

        `AlreadyCommitted` where the job is committed, by whichever attempt. A refused intent refuses the commit.
        """
        ...

    def job_finish(self, items: Sequence[Finish], worker: str) -> list[Finished | DetentError]:
        """End attempts as done; the job succeeds. By the holder, or by anyone where the attempt is committed.

        Commits in the same statement where the attempt was not committed before; then `result` is stored (a result
        stored by the commit is kept unless this one has its own). Finishing again answers the same again.
        `begun_after`: `started_at` is so long after the claim, but not after now or a start that is on record.
        """
        ...

    def job_abort(self, items: Sequence[Abort], worker: str) -> list[Aborted | DetentError]:
        """End attempts that did not succeed, by the rules at the top. Only by the holder.

        Aborting again an attempt that ended with the same outcome answers the same again. Outcome done and expired
        are not the caller's to give. `begun_after` is as in `job_finish`, and counts before the rules do.
        """
        ...

    # -- anyone's verbs ----------------------------------------------------------------------------------------

    def job_cancel(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Cancelled | DetentError]:
        """Stop jobs. Pending: cancelled at once. Running: the request is recorded (the first one stands), and its
        worker hears of it by `cancel_find` or the next renewal; an ops run, whose holder renews nothing, is cancelled
        at once, and its holder is refused from then on. Cancelled: nothing to do. Committed or succeeded:
        `AlreadyCommitted`. Other states: `InvalidTransition`; no such job: `NotFound`."""
        ...

    def job_retry(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        """Bring failed, quarantined and cancelled jobs back to pending, due now or when they were if later, with all
        attempts anew (spared = attempt); an expiry that has passed is over. Pending: nothing to do. Other states:
        `InvalidTransition`; the job of a target whose run is being rolled back: `RunBusy`; a job that
        plans, fetches or consolidates a pipeline run: `PartOfRun`; no such job: `NotFound`."""
        ...

    def job_discard(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        """Give up quarantined or failed jobs: cancelled. Cancelled: nothing to do. `InvalidTransition`, `NotFound`."""
        ...

    def job_force(self, job_id: int, to_state: str, actor: str, reason: str) -> Moved | DetentError:
        """An operator's override along the transitions declared as `force`; actor and reason are required and the
        record is marked. To succeeded: committed_at is set where it was not. Same state: nothing to do. Not declared:
        `InvalidTransition`."""
        ...

    # -- the services' verbs -----------------------------------------------------------------------------------

    def job_promote(self, limit: int) -> int:
        """Move up to `limit` waiting jobs that have come due (and are not blocked by a limit) to ready; how many."""
        ...

    def job_expire(self, limit: int) -> list[int]:
        """Cancel up to `limit` pending jobs whose expires_at has passed (trigger expire, actor system); their ids."""
        ...

    def lease_reap(self, limit: int, grace: float | None = None) -> Reaped:
        """Take up to `limit` expired leases away: uncommitted jobs end as expired, committed ones come to succeeded.

        With `grace`, leases that ran out while no worker was seen (`worker_seen`) for more than five seconds stay for
        `grace` seconds after the next one was: all workers were down, or the clock jumped and their holders live.
        Expiry is checked again in the statement that acts. Jobs locked by others are passed over and their lease row
        stays until a later pass; a lease row goes only when no running job names it.
        """
        ...

    def job_recover(self, ids: Sequence[int]) -> list[Finished | DetentError]:
        """Bring committed jobs to succeeded, by anyone and however often. Not committed: `LeaseLost`."""
        ...

    def job_prune(
        self, before: datetime, after_id: int, limit: int, actor: str, states: Sequence[str] | None = None
    ) -> Pruned:
        """Delete finished jobs (finished before `before`; only of `states`, None is any) with all their records,
        looking at up to `limit` jobs with ids above `after_id`. The horizon only moves forward and is recorded; keys
        survive."""
        ...

    def queue_pause(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        """No claim enters this queue until it is resumed. Pausing a paused queue changes nothing. Recorded."""
        ...

    def queue_resume(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        """Claims enter this queue again. Recorded."""
        ...

    def entity_move(
        self,
        lifecycle: Lifecycle,
        table: str,
        id_column: str,
        state_column: str,
        entity_id: str,
        trigger: str,
        actor: str,
        reason: str | None = None,
        metadata: str | None = None,
    ) -> Moved | DetentError:
        """Move a user's own entity by a declared trigger: the log row and the compare-and-set in one transaction.

        A row already in a state that the trigger leads to from elsewhere, with no move of that trigger from its own
        state, is there already: nothing to do (L3). `InvalidTransition`, `NotFound`, `UnknownState`.
        """
        ...


class Tx(Protocol):
    """The commit block's hand on the database: the user's own statements, in the transaction that marks committed."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs."""
        ...

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters: its rows, and how many it changed."""
        ...

    def intend(self, job: NewJob) -> None:
        """Enqueue a job in this very transaction. A job without an id (0) is given one in it."""
        ...

    def result(self, text: str) -> None:
        """Store the job's result with the commit."""
        ...


class AsyncVerbs(Protocol):
    """The client's verbs on an async connection; the words are those of `Verbs`."""

    async def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]: ...

    async def job_cancel(
        self, ids: Sequence[int], actor: str, reason: str | None = None
    ) -> list[Cancelled | DetentError]: ...

    async def job_retry(
        self, ids: Sequence[int], actor: str, reason: str | None = None
    ) -> list[Moved | DetentError]: ...

    async def job_get(self, ids: Sequence[int]) -> list[JobRow | None]: ...

    async def job_commit(self, item: Commit) -> Committed | DetentError: ...


class Store(Verbs, HoldersBlocks, Ahead, KnowsIdentity, HasDeadlines, HasLog, Protocol):
    """A database with the record in it. Verbs called on it are durable when they return; a claim may be so only with
    the next of them, where all who can learn of it are gone if it is lost."""

    @property
    def name(self) -> str:
        """The database for messages, without secrets."""
        ...

    @property
    def wake(self) -> Wake:
        """How this process learns that work has come."""
        ...

    @property
    def ids_by_transaction(self) -> bool:
        """Whether ids for a caller's own transaction must be reserved inside it, since it keeps all others out."""
        ...

    def migrate(self, watch: Callable[[str], None] = lambda _: None) -> list[str]:
        """Bring the schema up to date and return the names of what was applied: migrations, and parts that were not
        those of this release (`function job_claim_v2`, `trigger job_guard`). `watch` is called with each name as soon
        as it is applied. Safe if many processes do it at once, and if jobs run meanwhile; what was interrupted is
        continued.

        `ReleaseTooOld` and `SchemaTooNew` if a newer release was here, `SchemaUnreleased` if an unreleased one was."""
        ...

    def migration_sql(self) -> str:
        """What `migrate` would do now, as a script in one transaction, for a person to read or to run; empty where
        there is nothing to do. Changes nothing."""
        ...

    def facts(self) -> Facts:
        """What the database is, how far its schema is, and how durable its writes are; also where this version may not
        work with it. Changes nothing."""
        ...

    def install_roles(self) -> None:
        """Make the group roles, and give each its verbs and nothing else. `WrongPlace` where a database has none."""
        ...

    def ready(self, *, create: bool = True) -> None:
        """Create the schema in an empty database (without `create`: `SchemaMissing`, and nothing is made, not even a
        file); otherwise check that this version may work with it. `SchemaTooNew`, `SchemaTooOld`, `SchemaDiffers`,
        `NotADatabase`, `DatabaseUnreachable`, `DatabaseReadOnly`."""
        ...

    def check_thread(self) -> None:
        """`WrongPlace` where this thread is inside a transaction that a write of its own would wait for."""
        ...

    def together(self, work: Callable[[Verbs], T]) -> T:
        """Run several verbs in one transaction, durable when this returns. Deadlocks and serialization failures
        repeat the whole of `work` (R4); anything else it raises rolls everything back."""
        ...

    def on(self, connection: Any) -> Verbs:
        """The client's verbs inside the caller's own transaction on the caller's own connection."""
        ...

    def on_async(self, connection: Any) -> AsyncVerbs:
        """The same on an async connection of the caller's. `WrongPlace` where this database has none."""
        ...

    def up_for(self) -> float | None:
        """For how many seconds the database has been answering; None where it has no life of its own."""
        ...

    @property
    def whereabouts(self) -> tuple[str, Callable[[], str | None]]:
        """What tells this database from every other, to compare a user's connection with: its kind, and a look at
        which one it is; None where nobody else can have it."""
        ...

    def guard_entity(self, lifecycle: Lifecycle, table: str, id_column: str, state_column: str) -> None:
        """Install (again) the guards and the record of a user's own table. `NotFound` where there is no such table,
        `UnknownState` where rows in it are in states that are not declared, `LifecycleTooOld` where the database has a
        newer version of the lifecycle: then nothing is changed."""
        ...

    def commit_block(self, job_id: int, attempt: int) -> AbstractContextManager[Tx]:
        """The commit boundary: on entry the holder is checked, on exit the mark is set, both in one transaction with
        the statements between. Raises `LeaseLost` or `AlreadyCommitted`; then nothing of the block remains."""
        ...

    def verify(self, watch: Callable[[int], None] | None = None) -> list[Violation]:
        """Every invariant, each one query; empty is healthy. `watch` hears how many are left, before each of them."""
        ...

    def verify_step(self, place: WalkPlace, rows_max: int) -> WalkStep:
        """The invariants for at most `rows_max` jobs or queue rows at a place of the walk, in a moment."""
        ...

    def pages_not_checked(self) -> str | None:
        """Return one sentence if `verify` cannot check the pages of this database: why, and what to do; None if it
        can."""
        ...

    def break_off(self) -> None:
        """Whoever is in `verify` or `verify_step` hears `DatabaseBusy`, from any thread."""
        ...

    def repair(self, actor: str, reason: str, *, apply: bool = False) -> list[RepairStep]:
        """What would bring the projections back to what the records say; with `apply`, do it, in one transaction.

        Rebuilds job states, queue rows, dead rows and leases from execution and transition_log; never changes a
        committed fact, never an append-only row. Each applied step is on record (trigger `repair`). What cannot be
        rebuilt is a step with `can` False that says why, for a person.
        """
        ...

    def close(self) -> None: ...


CATALOGUE: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("ids_reserve", "client"),
        Verb("job_enqueue", "client", (IdConflict, KeyConflict)),
        Verb("job_cancel", "client", (AlreadyCommitted, InvalidTransition, NotFound)),
        Verb("job_retry", "client", (InvalidTransition, NotFound, PartOfRun, RunBusy)),
        Verb("job_discard", "client", (InvalidTransition, NotFound)),
        Verb("job_claim", "worker"),
        Verb("claim_find", "worker"),
        Verb("job_start", "worker", (LeaseLost,)),
        Verb("lease_renew", "worker"),
        Verb("event_append", "worker", (LeaseLost, NotFound)),
        Verb("job_commit", "worker", (LeaseLost, AlreadyCommitted, IdConflict, KeyConflict)),
        Verb("job_finish", "worker", (LeaseLost,)),
        Verb("job_abort", "worker", (LeaseLost, AlreadyCommitted)),
        Verb("job_recover", "worker", (LeaseLost, NotFound)),
        Verb("job_promote", "worker"),
        Verb("job_expire", "worker"),
        Verb("lease_reap", "worker"),
        Verb("entity_move", "client", (InvalidTransition, NotFound)),
        Verb("queue_pause", "admin"),
        Verb("queue_resume", "admin"),
        Verb("job_force", "admin", (InvalidTransition, NotFound)),
        Verb("job_prune", "worker"),
        *LOOKING,
        *EFFECTS,
        *KEEPING,
        *LIMITING,
        *PIPELINING,
        *ALERTING,
        *BATCHES,
        *OPS,
    )
}
