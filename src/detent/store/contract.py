"""The contract of a store: everything that can be done to the record, the same on every database.

A verb is atomic. Most take many items and answer item by item, in the order of the items: an answer is a record, or the
error that refused this item (returned, not raised), so that a mistake in one item does not undo the others. A refused
item stays untouched. The verbs of each noun are declared in the `contract` of its folder.

Terms. *now* is the time of the database's clock, read once per verb, and never earlier than a time already on the row.
The *holder* of (job, attempt): the job is running, its `attempt` is this one, and its lease has not expired. A caller
that is not the holder gets `LeaseLost`. An attempt *ends* in one statement: the job leaves running, `ended` becomes
`attempt`, and its execution row is inserted.

How an attempt that did not succeed ends (`job_abort`, and `lease_reap` with outcome expired), first rule that fits:
  1. the job is committed                      → it is not aborted: the caller is answered `AlreadyCommitted`;
                                                  the reaper brings it to succeeded instead (outcome done).
                                                  An earlier attempt has committed, which only damage makes possible:
                                                  released, pending at once; the next claim finds the commit
  2. outcome unknown; or expired, crashed or timed_out if the task is not idempotent and the attempt had started
                                                → outcome unknown. If the task's probe can tell (`effect_begin`),
                                                  and not fatal: pending after `delay`, and its expiry is dropped; one
                                                  attempt beyond attempts_max is granted for that, and outcome unknown
                                                  (the probe could not tell) is spared. Otherwise quarantined, reason
                                                  `unknown`
  3. a cancel was requested (outcome cancelled without one is released), or an ops run expired before it began
                                                → cancelled. Not while steps of a workflow have yet to be undone by
                                                  itself: then outcome cancelled is released, and the next rules apply.
                                                  Its function may want no undo: outcome cancelled or parked, and none
                                                  has begun
  4. outcome released, snoozed, throttled or parked; or expired, the first five times in the life of a job, but at most
     attempts_max − 1 times unless a cancelled workflow undoes its steps
                                                → pending after `delay`; spared + 1, the attempt does not count
  5. fatal, or attempt − spared ≥ attempts_max  → quarantined; failed if the job has no dead letters. If it was undoing
                                                  steps and has not finished: quarantined, reason `undo failed`
  6. otherwise                                  → pending after `delay` (expired: at once)
Row effects: pending gets its ready row (due now) or waiting row (due later), due_at = now + delay; quarantined gets its
dead row; states other than pending get finished_at = now. job.error is the error if the job comes to rest, else NULL.
execution.counted is false only by rules 2 and 4. execution.error always keeps the error of its attempt.
By rule 4 a job is not charged for a worker that died or could not reach the database. The bound stops poison jobs.
If an attempt of the job has entered a commit block in another database (`effect_begin` with marker), rules 3 and 5
lead to outcome unknown, quarantined, reason `unknown`: the effect may have happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar, Unpack

from detent.errors import DetentError
from detent.lifecycle.definition import Lifecycle
from detent.model.database_facts import Facts, LogGrowth, Space
from detent.model.records import (
    Cancelled,
    Claimed,
    Commit,
    Committed,
    Enqueued,
    JobRow,
    Moved,
    NewJob,
    RepairStep,
    Violation,
)
from detent.model.service_records import WalkPlace, WalkStep
from detent.model.workflow_records import NewSignal, SignalSent
from detent.store.alerts.contract import AlertVerbs
from detent.store.batches.contract import BatchVerbs
from detent.store.entities.contract import EntityVerbs
from detent.store.graphs.contract import GraphVerbs
from detent.store.jobs.contract import ClaimTerms, JobVerbs
from detent.store.jobs.contract_lists import JobListVerbs
from detent.store.jobs.contract_upkeep import JobUpkeepVerbs
from detent.store.limits.contract import LimitVerbs
from detent.store.move.contract import MovableDatabase, MoveVerbs
from detent.store.operations.contract import OperationVerbs
from detent.store.ops.contract import OpsVerbs
from detent.store.pipelines.contract import PipelineVerbs
from detent.store.schedules.contract import ScheduleVerbs
from detent.store.tokens.contract import TokenVerbs
from detent.store.verb import catalogue_of
from detent.store.webhooks.contract import WebhookVerbs
from detent.store.workers.contract import WorkerVerbs
from detent.store.workflows.contract import WorkflowVerbs
from detent.store.workflows.contract_copies import WorkflowCopyVerbs
from detent.store.workflows.contract_undo import UndoVerbs

__all__ = ["CATALOGUE", "AsyncVerbs", "EnqueueSent", "Store", "Tx", "Verbs", "Wake"]

T = TypeVar("T")
EnqueueSent: TypeAlias = Callable[[], Sequence[Enqueued | DetentError]]


class Verbs(
    JobVerbs,
    JobListVerbs,
    JobUpkeepVerbs,
    OperationVerbs,
    EntityVerbs,
    LimitVerbs,
    ScheduleVerbs,
    WorkerVerbs,
    AlertVerbs,
    BatchVerbs,
    OpsVerbs,
    PipelineVerbs,
    TokenVerbs,
    WebhookVerbs,
    WorkflowVerbs,
    UndoVerbs,
    WorkflowCopyVerbs,
    GraphVerbs,
    MoveVerbs,
    Protocol,
):
    """The verbs. On a `Store` each call is a transaction of its own; inside `together` and `on` they share one."""


CATALOGUE = catalogue_of(Verbs)
"""Every verb by its name."""


class AsyncVerbs(Protocol):
    """The client's verbs on an async connection, with the meaning that they have in `Verbs`."""

    async def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]: ...

    async def job_cancel(
        self, ids: Sequence[int], actor: str, reason: str | None = None, *, undo: bool = True
    ) -> list[Cancelled | DetentError]: ...

    async def job_retry(
        self, ids: Sequence[int], actor: str, reason: str | None = None
    ) -> list[Moved | DetentError]: ...

    async def signal_send(
        self, items: Sequence[NewSignal], *, apart: bool = False
    ) -> list[SignalSent | DetentError]: ...

    async def job_get(self, ids: Sequence[int]) -> list[JobRow | None]: ...

    async def job_commit(self, item: Commit) -> Committed | DetentError: ...


class Tx(Protocol):
    """The user's own statements in a commit block, in the transaction that marks the attempt committed."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs."""
        ...

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters; return its rows, and how many it changed."""
        ...

    def intend(self, job: NewJob) -> None:
        """Enqueue a job in this transaction. A job without an id (0) gets one in it."""
        ...

    def result(self, text: str) -> None:
        """Store the job's result with the commit."""
        ...


class Wake(Protocol):
    """Waiting for work without polling all the time. A wake-up may be spurious or lost: a waiter looks again when its
    time is over."""

    @property
    def is_sure(self) -> bool:
        """Whether wake-ups were seen to arrive; if not, waiters poll often."""
        ...

    def version(self, timeout: float = 2.0) -> int:
        """Return the position of a waiter that is about to wait for so long. Taken before it looks for work, so that
        later work is not missed. Work that is being committed at this moment may be."""
        ...

    def wait(self, version: int, timeout: float) -> bool:
        """Return when jobs may have become ready since `version`, or after `timeout` seconds (False)."""
        ...

    def interrupt(self) -> None:
        """Let every waiter of this process return now."""
        ...


class Store(Verbs, Protocol):
    """A database with the record in it. A verb called on it is durable when it returns, except that a claim may not be
    synced until the next write. A crash that loses it also ends every process that saw it."""

    @property
    def name(self) -> str:
        """The database for messages, without secrets."""
        ...

    @property
    def schema_known(self) -> int:
        """The number of the newest migration that this release has."""
        ...

    @property
    def wake(self) -> Wake:
        """How this process learns that there is work."""
        ...

    @property
    def ids_by_transaction(self) -> bool:
        """Whether ids for a caller's own transaction must be reserved inside it, since it blocks all other writers."""
        ...

    def migrate(self, watch: Callable[[str], None] = lambda _: None) -> list[str]:
        """Bring the schema up to date and return the names of what was applied: migrations, and parts that were not
        those of this release (`function job_claim_v2`, `trigger job_guard`). `watch` is called with each name as soon
        as it is applied. Many processes may call it at once, and jobs may run meanwhile; an interrupted upgrade is
        continued.

        `ReleaseTooOld` and `SchemaTooNew` if a newer release was here, `SchemaUnreleased` if an unreleased one was."""
        ...

    def migration_sql(self) -> str:
        """Return what `migrate` would do now as a script in one transaction, to read or to run; empty if there is
        nothing to do. Changes nothing."""
        ...

    def facts(self) -> Facts:
        """Return what the database is, how far its schema is, and how durable its writes are; also if this version may
        not work with it. Changes nothing."""
        ...

    def log_growth(self) -> LogGrowth | None:
        """Return how long the write-ahead log is; None if the database has none that readers can make grow. Reads some
        bytes of files and takes no lock."""
        ...

    def space(self) -> Space | None:
        """Return how much space the database takes, and what keeps it from getting smaller; None if there is none yet
        or it is in memory. Reads only what the database keeps about itself."""
        ...

    def movable(self) -> MovableDatabase:
        """Return what a move of the whole database does to it."""
        ...

    def back_up(
        self, target: str, *, force: bool = False, watch: Callable[[int, int], None] = lambda _done, _total: None
    ) -> list[Violation]:
        """Copy the database into a new file while it is in use, and verify the copy. If there are violations, nothing
        is left, except with `force`; return them. `watch` is called with the pages copied, and how many there are.

        `InvalidInput` if the target exists, `WrongPlace` if the database is not a file."""
        ...

    def install_roles(self) -> None:
        """Create the group roles, and grant each its verbs and nothing else. `WrongPlace` if the database has none."""
        ...

    def ready(self, *, create: bool = True) -> None:
        """Create the schema in an empty database (without `create`: `SchemaMissing`, and nothing is made, not even a
        file); otherwise check that this version may work with it. `SchemaTooNew`, `SchemaTooOld`, `SchemaDiffers`,
        `NotADatabase`, `DatabaseUnreachable`, `DatabaseReadOnly`."""
        ...

    def check_thread(self) -> None:
        """Raise `WrongPlace` if this thread is inside a transaction that a separate write would wait for."""
        ...

    def together(self, work: Callable[[Verbs], T]) -> T:
        """Run several verbs in one transaction, durable when this returns. Deadlocks and serialization failures
        repeat the whole of `work` (R4); anything else it raises rolls everything back."""
        ...

    def on(self, connection: Any) -> Verbs:
        """Return the client's verbs inside the caller's own transaction on the caller's own connection."""
        ...

    def on_async(self, connection: Any) -> AsyncVerbs:
        """Return the same on an async connection. `WrongPlace` if this database has none."""
        ...

    def answering_within(self, seconds: float) -> AbstractContextManager[None]:
        """Limit how long this thread waits for a server inside the block. A connection that stays silent for longer is
        closed, with all idle ones; the call raises `DatabaseUnreachable`, or `OutcomeUnknown` if it may have written.
        Files have no server: no limit there."""
        ...

    def up_for(self) -> float | None:
        """Return for how many seconds the database server has been up; None if there is no server."""
        ...

    @property
    def whereabouts(self) -> tuple[str, Callable[[], str | None]]:
        """What distinguishes this database from every other, to compare a user's connection with: its kind, and a
        function that returns which one it is; None if no other process can have it."""
        ...

    def guard_entity(self, lifecycle: Lifecycle, table: str, id_column: str, state_column: str) -> None:
        """Install (again) the guards and the record of a user's own table. `NotFound` if there is no such table,
        `UnknownState` if rows in it are in states that are not declared, `LifecycleTooOld` if the database has a newer
        version of the lifecycle: then nothing is changed."""
        ...

    def lifecycle_versions(self) -> dict[str, int]:
        """Return the version of each lifecycle that is attached to a table; empty if there is no schema yet."""
        ...

    def identity_of(self, number: int) -> str:
        """Return the identity under which the job or run with that id was made. Read from the database once."""
        ...

    def signing_key(self) -> bytes:
        """Return the secret with which tokens of signals are signed. Read from the database once. `DatabaseError`."""
        ...

    def claim_ahead(self, **terms: Unpack[ClaimTerms]) -> Callable[[], list[Claimed]]:
        """Prepare `job_claim` as far as possible before there is work. The thread that waited calls the result once,
        which claims."""
        ...

    def job_enqueue_sent(self, items: Sequence[NewJob]) -> EnqueueSent | None:
        """Send `job_enqueue` without waiting. Calling the result once, on any thread, waits for the answers. None if
        it could not be sent without waiting."""
        ...

    def commit_block(self, job_id: int, attempt: int) -> AbstractContextManager[Tx]:
        """Enter the commit boundary: on entry the holder is checked, on exit the mark is set, both in one transaction
        with the statements between. Raises `LeaseLost` or `AlreadyCommitted`; then nothing of the block remains."""
        ...

    def holders_block(
        self, job_id: int, attempt: int, leave: Callable[[Verbs], DetentError | Moved]
    ) -> AbstractContextManager[Tx]:
        """Run the user's own statements and what `leave` writes in one transaction that is not the commit. The holder
        is checked on entry, and what `leave` refuses is raised; then nothing of the block remains. `LeaseLost`,
        `AlreadyCommitted`."""
        ...

    def verify(self, watch: Callable[[int], None] | None = None) -> list[Violation]:
        """Check every invariant, each with one query; empty is healthy. `watch` is called before each with how many are
        left."""
        ...

    def verify_step(self, place: WalkPlace, rows_max: int) -> WalkStep:
        """Check the invariants for at most `rows_max` jobs or queue rows at a place of the walk; takes a moment."""
        ...

    def pages_not_checked(self) -> str | None:
        """Return one sentence if `verify` cannot check the pages of this database: why, and what to do; None if it
        can."""
        ...

    def cancel_reads(self) -> None:
        """Interrupt `verify` and `verify_step`, from any thread: they raise `DatabaseBusy`."""
        ...

    def repair(self, actor: str, reason: str, *, apply: bool = False) -> list[RepairStep]:
        """Return what would bring the projections back to what the records say; with `apply`, do it, in one
        transaction.

        Rebuilds job states, queue rows, dead rows and leases from execution and transition_log; never changes a
        committed fact, never an append-only row. Each applied step is on record (trigger `repair`). What cannot be
        rebuilt is a step with `can` False that says why, for a person.
        """
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
