"""The records of workers, schedules, operations, queues and services. Frozen, as in `records`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from detent.model.records import NewJob, Violation

__all__ = [
    "ACTIONS",
    "CATCH_UP",
    "Action",
    "Agenda",
    "CatchUp",
    "DeadGroup",
    "DeclarationRow",
    "Declared",
    "DeclaredKind",
    "Fire",
    "NewOperation",
    "NewSchedule",
    "OldestReady",
    "OperationRow",
    "QueueDepth",
    "QueueRow",
    "RecoveryRow",
    "ScheduleRow",
    "SilentRow",
    "TaskSecrets",
    "TaskTimes",
    "WalkPlace",
    "WalkStep",
    "WorkerRow",
    "WorkerSeen",
]

Action = Literal["retry", "cancel", "discard", "move"]
ACTIONS: tuple[Action, ...] = ("retry", "cancel", "discard", "move")
CatchUp = Literal["latest", "all", "skip"]
CATCH_UP: tuple[CatchUp, ...] = ("latest", "all", "skip")
DeclaredKind = Literal["schedule", "limit"]
Declared = Literal["new", "same", "replaced"]


class WorkerSeen(Struct, frozen=True, kw_only=True):
    """The heartbeat of a worker. `queues` None means every queue; `running` is how many jobs it holds; `versions` are
    those of workflows that it can continue, by task."""

    id: int
    name: str
    host: str
    pid: int
    queues: tuple[str, ...] | None
    tasks: tuple[str, ...]
    slots: int
    running: int = 0
    stopping: bool = False
    versions: dict[str, tuple[int, ...]] = {}


class Agenda(Struct, frozen=True, kw_only=True):
    """Work of the services: the earliest time of each kind, None if there is none of it."""

    now: datetime
    promote_at: datetime | None = None  # a waiting job becomes due
    expire_at: datetime | None = None  # a pending job expires
    reap_at: datetime | None = None  # a lease expires
    lease_checksum: int | None = None  # changes when a lease is taken, renewed or removed, among the first hundred
    schedule_at: datetime | None = None  # a schedule has its next tick
    reconcile_at: datetime | None = None  # a reconciliation is due
    operations: bool = False  # an operation is running
    recovery: bool = False  # a queue has automatic recovery
    failure_reports: bool = False  # failure hooks are to be called for jobs that the reaper ended
    firing: bool = False  # an alert is firing
    notices: bool = False  # a notice waits for its sink
    wake_requests: bool = False  # workflows could not be woken at once
    tree_cancels: bool = False  # children of cancelled jobs are to be cancelled
    schema_demanded: int = 0  # the schema that code must know to work here, as the migrations say
    drain_requested_by: str | None = None  # who asked this worker to drain
    drain_reason: str | None = None


class WorkerRow(Struct, frozen=True, kw_only=True):
    """A worker as of its last heartbeat (`seen_at`). `queues` is None if it serves every queue. `running` is the number
    of jobs that it holds. `versions` are those of workflows that it can continue, by task. A worker that was asked to
    drain has the time, the actor and the reason."""

    id: int
    name: str
    host: str
    pid: int
    queues: tuple[str, ...] | None
    tasks: tuple[str, ...]
    slots: int
    running: int
    stopping: bool
    started_at: datetime
    seen_at: datetime
    drain_requested_at: datetime | None = None
    drain_requested_by: str | None = None
    drain_reason: str | None = None
    versions: dict[str, tuple[int, ...]] = {}


class NewSchedule(Struct, frozen=True, kw_only=True):
    """A schedule to write; `next_at` is its first tick, used if it is new or its times have changed."""

    name: str
    cron: str
    zone: str
    catch_up: CatchUp
    task: str
    payload: str
    queue: str
    attempts_max: int
    next_at: datetime
    tenant: str = ""
    priority: int = 0
    dead_letter: bool = True
    idempotent: bool = True
    unique_pending: bool = False
    limit_key: str | None = None
    cost: int | None = None


class ScheduleRow(Struct, frozen=True, kw_only=True):
    """A schedule: at the ticks of `cron` in `zone` it enqueues `task` with `payload` (JSON). `next_at` is its next
    tick, `last_at` the last tick that was handled. While it is paused, `paused_at`, `paused_by` and `reason` are set.
    `changed_at` is when it was last changed. The other fields are the options of its jobs."""

    name: str
    tenant: str
    cron: str
    zone: str
    catch_up: CatchUp
    task: str
    payload: str
    queue: str
    priority: int
    attempts_max: int
    dead_letter: bool
    idempotent: bool
    unique_pending: bool
    limit_key: str | None
    cost: int | None
    next_at: datetime
    last_at: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    reason: str | None
    changed_at: datetime


class DeclarationRow(Struct, frozen=True, kw_only=True):
    """The newest declaration of a schedule or a limit in the code of an application."""

    kind: DeclaredKind
    name: str
    fingerprint: str
    at: datetime


class Fire(Struct, frozen=True):
    """One tick, and the job it enqueues; None if it was missed and is skipped."""

    fire_at: datetime
    job: NewJob | None


class NewOperation(Struct, frozen=True, kw_only=True):
    """An operation on all jobs that match its filters; None matches any. `to_queue` and `to_priority` are the target of
    a move. The filters are those of `JobSearch`; `metadata` is a JSON object of names and arrays of matching values.
    `undo` is False if a cancel does not undo the steps of workflows."""

    id: int
    action: Action
    actor: str
    reason: str | None = None
    job_state: str | None = None
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None
    to_queue: str | None = None
    to_priority: int | None = None
    key: str | None = None
    correlation_id: str | None = None
    run_id: int | None = None
    worker: str | None = None
    error: str | None = None
    metadata: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    undo: bool = True


class OperationRow(Struct, frozen=True, kw_only=True):
    """An operation and its progress: it covers jobs up to `until_id`, and has visited those up to `after_id`."""

    id: int
    action: Action
    state: str
    actor: str
    reason: str | None
    job_state: str | None
    task: str | None
    queue: str | None
    tenant: str | None
    to_queue: str | None
    to_priority: int | None
    until_id: int
    after_id: int
    looked: int
    changed: int
    refused: int
    created_at: datetime
    finished_at: datetime | None
    key: str | None = None
    correlation_id: str | None = None
    run_id: int | None = None
    worker: str | None = None
    error: str | None = None
    metadata: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    undo: bool = True


class QueueRow(Struct, frozen=True, kw_only=True):
    """A queue that was paused at some time: since when and by whom; None if it was resumed."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    reason: str | None


class QueueDepth(Struct, frozen=True):
    """Number of jobs of a queue in a state."""

    queue: str
    state: str
    jobs: int


class OldestReady(Struct, frozen=True):
    """The job of a queue and task that is ready and has been due longest."""

    queue: str
    task: str
    job_id: int
    ready_at: datetime


class DeadGroup(Struct, frozen=True, kw_only=True):
    """Dead jobs of one task and queue that died of the same cause.

    `reason`: why there is no further attempt (`attempts used up`, `fatal`, `unknown`, `undo failed`, `forced`). `kind`:
    the class of the exception, or the first words of the error if it names none. `attempts`: the attempts at all of
    them together. `sample_id`: the newest of them.
    """

    task: str
    queue: str
    reason: str
    kind: str
    jobs: int
    attempts: int
    oldest_at: datetime
    newest_at: datetime
    sample_id: int


class SilentRow(Struct, frozen=True, kw_only=True):
    """A running job that shows no activity. `stale`: claimed and not started. `stalled`: started, without events.
    `since` is its claim, or its last activity."""

    job_id: int
    attempt: int
    queue: str
    task: str
    worker: str
    kind: Literal["stale", "stalled"]
    since: datetime


class RecoveryRow(Struct, frozen=True, kw_only=True):
    """A queue whose silent jobs are stopped and run again automatically, after these seconds (None: never)."""

    queue: str
    stale_after: float | None
    stalled_after: float | None
    changed_by: str
    reason: str | None
    changed_at: datetime


class JobsLeft(Struct, frozen=True):
    """Whether a job was found that is left to do, and the id after which to look next: just before that job, or after
    the last that was looked at. None at the end; 0 if the job is ready or running."""

    found: bool
    place: int | None


class KeysForgotten(Struct, frozen=True):
    """How many keys were deleted, and the tenant and key to continue after; None at the end."""

    keys: int
    next: tuple[str, str] | None


class LimitsPruned(Struct, frozen=True):
    """How many limits were deleted, and the key to continue after; None at the end."""

    limits: int
    next: str | None


class LinesPruned(Struct, frozen=True):
    """How many transitions were deleted, and the number to continue after; None at the end."""

    lines: int
    next: int | None


class IdentityRow(Struct, frozen=True, kw_only=True):
    """An identity of the database. It is part of the effect keys of jobs and runs with ids from `first_id` up to the
    `first_id` of the next identity."""

    n: int
    identity: str
    first_id: int
    made_by: str
    reason: str | None
    made_at: datetime


class TaskTimes(Struct, frozen=True, kw_only=True):
    """The times of a task in seconds; None means the default. When its jobs count as stale and as stalled, and how long
    their results are kept."""

    task: str
    stale_after: float | None = None
    stalled_after: float | None = None
    result_ttl: float | None = None


class TaskSecrets(Struct, frozen=True, kw_only=True):
    """The fields of a task that are secret: paths such as `customer.iban`."""

    task: str
    paths: tuple[str, ...]


class WalkPlace(Struct, frozen=True, kw_only=True):
    """The position of the continuous verification: at the schema, at the jobs with ids below `below` (None: at the
    newest), at the rows of the queue or the slots of limits after the key `after` (None: at the first), or at the
    newest batch run below `below`."""

    part: Literal["schema", "jobs", "queue", "slots", "runs"] = "schema"
    below: int | None = None
    after: tuple[Any, ...] | None = None


class WalkStep(Struct, frozen=True):
    """The violations that one step found, and the position of the next step; None at the end."""

    violations: tuple[Violation, ...]
    then: WalkPlace | None
