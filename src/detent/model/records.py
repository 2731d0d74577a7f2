"""The records that the store accepts and returns.

They are frozen and have no behaviour. Times are aware datetimes in UTC with microseconds. JSON is text that
`model.json_codec` has checked; it is stored unchanged, so both databases return the same.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

__all__ = [
    "OUTCOMES",
    "Abort",
    "Aborted",
    "Appended",
    "Cancelled",
    "Claimed",
    "ClaimedEach",
    "Commit",
    "Committed",
    "Count",
    "EffectBegun",
    "EffectEvidence",
    "Enqueued",
    "EventRow",
    "ExecutionRow",
    "Finish",
    "Finished",
    "JobDetails",
    "JobPage",
    "JobPlace",
    "JobRow",
    "JobsPruned",
    "Moved",
    "NewEvent",
    "NewJob",
    "Outcome",
    "Prunable",
    "Pruned",
    "Reaped",
    "RecordFeedLine",
    "RecordFeedPage",
    "RecordPage",
    "RecordPlace",
    "Renewal",
    "RepairStep",
    "ResultsDropped",
    "Started",
    "TransitionRow",
    "Violation",
]

Outcome = Literal[
    "done",
    "error",
    "expired",
    "crashed",
    "cancelled",
    "released",
    "snoozed",
    "throttled",
    "timed_out",
    "unknown",
    "parked",
]
OUTCOMES: tuple[Outcome, ...] = (
    "done",
    "error",
    "expired",
    "crashed",
    "cancelled",
    "released",
    "snoozed",
    "throttled",
    "timed_out",
    "unknown",
    "parked",
)


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job to enqueue. Its id was reserved before, so sending it twice is harmless."""

    id: int
    task: str
    payload: str
    nonce: int
    fingerprint: str
    tenant: str = ""
    queue: str = "default"
    priority: int = 0
    due_at: datetime | None = None  # None, or a past time: now
    expires_at: datetime | None = None
    key: str | None = None
    key_ttl: float | None = None  # seconds; None keeps the key for ever
    unique_pending: bool = False  # the key is released at the first claim, or when the job leaves pending otherwise
    metadata: str | None = None
    correlation_id: str | None = None
    traceparent: str | None = None
    run_id: int | None = None
    attempts_max: int = 4
    dead_letter: bool = True
    idempotent: bool = True
    limit_key: str | None = None
    cost: int | None = None  # tokens of its task's limit; None means one
    parent_id: int | None = None  # the workflow that spawns it
    group: int | None = None  # if one item of a group is refused, all are


class Enqueued(Struct, frozen=True, gc=False):
    """The job of a request; `created` is False if an earlier job was found by its key."""

    job_id: int
    created: bool


class Claimed(Struct, frozen=True, gc=False, array_like=True):
    """A claimed job. The claimer holds (job_id, attempt) under the lease that it requested."""

    job_id: int
    attempt: int
    task: str
    payload: str
    tenant: str
    queue: str
    metadata: str | None
    correlation_id: str | None
    traceparent: str | None
    run_id: int | None
    spared: int
    attempts_max: int
    committed: bool = False


class JobPlace(Struct, frozen=True, order=True):
    """A cursor in the order of creation: a search continues with jobs created before it, retention with those after."""

    created_at: datetime
    id: int


class JobPage(Struct, frozen=True):
    """Jobs that were found, and the cursor to continue from; None at the end."""

    rows: list[JobRow]
    next: JobPlace | None


class JobDetails(Struct, frozen=True):
    """A job's key while that is kept, the worker that holds or last held it, its last progress and the status that its
    workflow has set, both as JSON text."""

    job_id: int
    key: str | None
    worker: str | None
    progress: str | None
    status: str | None = None


class Started(Struct, frozen=True):
    """An attempt whose function was started."""

    job_id: int
    attempt: int


EffectEvidence = Literal["probe", "marker"]
"""What can tell whether an effect has happened: the probe of the task, or a marker in the other database."""


class EffectBegun(Struct, frozen=True):
    """The attempt may begin its effect. `nonce` and `job_id` together identify this job among all databases."""

    job_id: int
    attempt: int
    nonce: int


class Renewal(Struct, frozen=True):
    """The result of renewing a lease: `held` is False if the reaper has taken it away."""

    lease_id: int
    held: bool
    cancel_requested: tuple[tuple[int, int], ...] = ()
    """The jobs under this lease for which a cancel was requested, each with its attempt."""


class NewEvent(Struct, frozen=True, kw_only=True):
    """An event to append. With `attempt`, the writer must hold that attempt; without, it is a note of another
    caller."""

    job_id: int
    attempt: int | None
    level: str
    message: str
    payload: str | None = None
    key: str | None = None


class Appended(Struct, frozen=True):
    """The number of an appended event; `created` is False if the same event was stored before."""

    job_id: int
    seq: int
    created: bool


class Commit(Struct, frozen=True, kw_only=True):
    """The commit of an attempt: its effect has happened. With its result and the jobs that follow from it."""

    job_id: int
    attempt: int
    result: str | None = None
    intents: tuple[NewJob, ...] = ()


class Committed(Struct, frozen=True):
    """The commit of a job, of which there is at most one."""

    job_id: int
    attempt: int


class Finish(Struct, frozen=True, gc=False):
    """The end of an attempt that succeeded."""

    job_id: int
    attempt: int
    result: str | None = None
    begun_after: float | None = None  # seconds from the claim to the call of the function, by the worker's clock


class Finished(Struct, frozen=True, gc=False):
    """The attempt with which a job succeeded."""

    job_id: int
    attempt: int


class Abort(Struct, frozen=True, kw_only=True):
    """The end of an attempt that did not succeed."""

    job_id: int
    attempt: int
    outcome: Outcome
    error: str | None = None
    delay: float = 0.0  # seconds until the job is due again, if it goes back to pending
    fatal: bool = False  # no further attempt, even if some are left
    begun_after: float | None = None  # as in `Finish`; None if the function was not called, or the time is not known
    suspect: bool = False  # its process died or was held, and the job may be the cause


class Aborted(Struct, frozen=True):
    """The state of a job after the end of an attempt."""

    job_id: int
    attempt: int
    outcome: Outcome
    state: str


class Cancelled(Struct, frozen=True):
    """The answer to a cancel. `state` is `cancelled`, or `running` if the worker that holds the job has yet to stop
    it."""

    job_id: int
    state: str


class Moved(Struct, frozen=True):
    """The answer to a verb that moves an entity: it is in `state`. `changed` is False if it was there already."""

    entity_id: str
    state: str
    changed: bool


class BadRow(Struct, frozen=True):
    """A damaged row that a service skipped: its entity and id, the cause, and the id to skip from now on."""

    entity: str
    entity_id: str
    cause: str
    skip_id: int


class ClaimedEach(Struct, frozen=True):
    """The result of claiming job by job: the jobs in the order of the claim, and the damaged rows that were skipped."""

    jobs: tuple[Claimed, ...] = ()
    bad: tuple[BadRow, ...] = ()


class EachDone(Struct, frozen=True):
    """The result of a service that works row by row: the jobs that it handled, and the damaged rows that it skipped."""

    done: tuple[int, ...] = ()
    bad: tuple[BadRow, ...] = ()


class Reaped(Struct, frozen=True):
    """The result of one pass of the reaper."""

    leases: int = 0  # expired leases taken away
    aborted: tuple[int, ...] = ()  # jobs whose attempt ended as expired (or unknown)
    recovered: tuple[int, ...] = ()  # committed jobs brought to succeeded
    passed_over: int = 0  # expired leases that stay, because other transactions lock some of their jobs
    bad: tuple[BadRow, ...] = ()  # damaged rows; only of `lease_reap_each`


class Pruned(Struct, frozen=True):
    """How many runs were deleted, and the id to continue from; None at the end."""

    jobs: int
    next_id: int | None


class JobsPruned(Struct, frozen=True):
    """How many jobs were deleted, and the place to continue after; None at the end."""

    jobs: int
    next: JobPlace | None


class Prunable(Struct, frozen=True):
    """The jobs that may be deleted, and the place to continue after; None at the end."""

    ids: tuple[int, ...]
    next: JobPlace | None


class ResultsDropped(Struct, frozen=True):
    """How many results were deleted, and the place to continue after; None at the end."""

    results: int
    next: JobPlace | None


class Count(Struct, frozen=True):
    """Number of jobs of a queue in a state: of a tenant, or of all together (None)."""

    tenant: str | None
    queue: str
    state: str
    jobs: int


class JobRow(Struct, frozen=True, kw_only=True):
    """A job: its row in the database."""

    id: int
    tenant: str
    task: str
    queue: str
    priority: int
    due_at: datetime
    expires_at: datetime | None
    payload: str
    metadata: str | None
    correlation_id: str | None
    traceparent: str | None
    run_id: int | None
    nonce: int
    created_at: datetime
    attempts_max: int
    dead_letter: bool
    idempotent: bool
    limit_key: str | None
    cost: int | None
    state: str
    attempt: int
    spared: int
    ended: int
    result: str | None
    error: str | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None
    cancel_reason: str | None
    lease_id: int | None
    leased_at: datetime | None
    started_at: datetime | None
    committed_at: datetime | None
    result_dropped_at: datetime | None = None  # when retention deleted the result
    parent_id: int | None = None  # the workflow that has spawned it


class ExecutionRow(Struct, frozen=True, kw_only=True):
    """An attempt at a job, ended or in flight (the view `executions`). `counted` is whether it counts against the
    retries, `suspect` whether its process died or was held, so that the job may be the cause."""

    job_id: int
    attempt: int
    state: str
    worker: str
    leased_at: datetime
    started_at: datetime | None
    committed_at: datetime | None
    done_at: datetime | None
    aborted_at: datetime | None
    outcome: str | None
    error: str | None
    next_state: str | None
    next_due_at: datetime | None
    counted: bool | None
    lease_id: int | None
    expires_at: datetime | None
    suspect: bool | None = None


class EventRow(Struct, frozen=True, kw_only=True):
    """An event of a job: a line that it wrote."""

    job_id: int
    seq: int
    attempt: int
    level: str
    message: str
    payload: str | None
    key: str | None
    at: datetime


class TransitionRow(Struct, frozen=True, kw_only=True):
    """One transition on record (the view `transition`). Those of an entity are in the order (attempt, rank, n)."""

    entity: str
    entity_id: str
    from_state: str | None
    to_state: str
    trigger: str
    at: datetime
    actor: str
    reason: str | None
    metadata: str | None
    correlation_id: str | None
    forced: bool
    attempt: int
    rank: int
    n: int


class RecordPlace(Struct, frozen=True, order=True):
    """A cursor in the record: a search continues with transitions before it."""

    at: datetime
    n: int


class RecordPage(Struct, frozen=True):
    """Transitions that were found, and the cursor to continue from; None at the end."""

    rows: list[TransitionRow]
    next: RecordPlace | None


class RecordFeedLine(Struct, frozen=True):
    """A line of the record, its tenant, and the place after it."""

    cursor: str
    tenant: str
    row: TransitionRow


class RecordFeedPage(Struct, frozen=True):
    """Lines of the record in an order in which none comes too late, and the place to continue after."""

    lines: list[RecordFeedLine]
    next: str
    more: bool
    """Whether there may be more lines already."""
    pruned: bool
    """Whether retention may have deleted lines between the place of the reader and the first line of the page."""
    examined: int
    """Every line up to this number that was there and that the reader had not seen is in the page."""
    decided: int
    """Every number up to this one has its line, or never gets one."""


class Violation(Struct, frozen=True):
    """A violation of an invariant: its name, the entity and its id, and what is wrong."""

    invariant: str
    entity: str
    entity_id: str
    detail: str


class RepairStep(Struct, frozen=True):
    """One step of a repair. `does` says what is done; if `can` is False, it says why a person is needed."""

    invariant: str
    entity: str
    entity_id: str
    does: str
    can: bool = True
