"""The records that cross the store's contract: what goes in, and what comes out.

Frozen, without behaviour. Times are aware datetimes in UTC with microseconds; JSON is text that came through the
door (`model.jsondoor`) and is stored letter for letter, so both databases give back the same.
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
    "Enqueued",
    "EventRow",
    "ExecutionRow",
    "Finish",
    "Finished",
    "JobDetails",
    "JobPage",
    "JobPlace",
    "JobRow",
    "Moved",
    "NewEvent",
    "NewJob",
    "Outcome",
    "Prunable",
    "Pruned",
    "Reaped",
    "RecordPage",
    "RecordPlace",
    "Renewal",
    "RepairStep",
    "ResultsDropped",
    "Started",
    "ToldBy",
    "TransitionRow",
    "Violation",
]

Outcome = Literal[
    "done", "error", "expired", "crashed", "cancelled", "released", "snoozed", "throttled", "timed_out", "unknown"
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
)


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job as its client describes it; the id was reserved before, so sending it twice is harmless."""

    id: int
    task: str
    payload: str
    nonce: int
    fingerprint: str
    tenant: str = ""
    queue: str = "default"
    priority: int = 0
    due_at: datetime | None = None  # None, or a time already past: now
    expires_at: datetime | None = None
    key: str | None = None
    key_ttl: float | None = None  # seconds; None keeps the key for ever
    unique_pending: bool = False  # the key is given back at the first claim, or when the job leaves pending otherwise
    metadata: str | None = None
    correlation_id: str | None = None
    traceparent: str | None = None
    run_id: int | None = None
    attempts_max: int = 4
    dead_letter: bool = True
    idempotent: bool = True
    limit_key: str | None = None
    cost: int | None = None  # tokens of its task's limit; None is one
    group: int | None = None  # one refused item refuses its group


class Enqueued(Struct, frozen=True, gc=False):
    """The job that now stands for the request; `created` is False where an earlier one was found."""

    job_id: int
    created: bool


class Claimed(Struct, frozen=True, gc=False, array_like=True):
    """A job handed to its claimer: hold it by (job_id, attempt) under the lease that was asked for."""

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
    """A place in the order of creation: a search goes on with the jobs created before it."""

    created_at: datetime
    id: int


class JobPage(Struct, frozen=True):
    """Jobs that were found, and the place to go on after; None at the end."""

    rows: list[JobRow]
    next: JobPlace | None


class JobDetails(Struct, frozen=True):
    """A job's key while that is kept, the worker that holds or last held it, and its last progress as JSON text."""

    job_id: int
    key: str | None
    worker: str | None
    progress: str | None


class Started(Struct, frozen=True):
    """The attempt is in progress."""

    job_id: int
    attempt: int


ToldBy = Literal["probe", "marker"]
"""Who can tell whether an effect has happened: the task's probe, or a marker in the database where it happens."""


class EffectBegun(Struct, frozen=True):
    """The attempt may act. `nonce` and `job_id` together tell this job from every job of every other database."""

    job_id: int
    attempt: int
    nonce: int


class Renewal(Struct, frozen=True):
    """What a renewal found: `held` is False where the reaper took the lease away."""

    lease_id: int
    held: bool
    cancel_requested: tuple[tuple[int, int], ...] = ()
    """The jobs under this lease that are to be cancelled, each with its attempt."""


class NewEvent(Struct, frozen=True, kw_only=True):
    """A line to append. With `attempt` the writer must hold it; without, it is a note by somebody else."""

    job_id: int
    attempt: int | None
    level: str
    message: str
    payload: str | None = None
    key: str | None = None


class Appended(Struct, frozen=True):
    """Where the line stands; `created` is False where the same line was there already."""

    job_id: int
    seq: int
    created: bool


class Commit(Struct, frozen=True, kw_only=True):
    """The mark that the effect of an attempt has happened, with what must follow from it."""

    job_id: int
    attempt: int
    result: str | None = None
    intents: tuple[NewJob, ...] = ()


class Committed(Struct, frozen=True):
    """The one commit of this job."""

    job_id: int
    attempt: int


class Finish(Struct, frozen=True, gc=False):
    """An attempt that did its work."""

    job_id: int
    attempt: int
    result: str | None = None
    begun_after: float | None = None  # seconds from the claim to the call of the function, by the worker's clock


class Finished(Struct, frozen=True, gc=False):
    """The job succeeded with this attempt."""

    job_id: int
    attempt: int


class Abort(Struct, frozen=True, kw_only=True):
    """An attempt that ended without its work being done, and how."""

    job_id: int
    attempt: int
    outcome: Outcome
    error: str | None = None
    delay: float = 0.0  # seconds until the job is due again, where it goes back to pending
    fatal: bool = False  # no further attempt, however many are left
    begun_after: float | None = None  # as in `Finish`; None: the function was not called, or nobody knows when


class Aborted(Struct, frozen=True):
    """What the end of the attempt made of the job."""

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
    """A damaged row that a service passed over: its entity and id, why it could not be handled, and the id to skip."""

    entity: str
    entity_id: str
    cause: str
    skip_id: int


class ClaimedEach(Struct, frozen=True):
    """What a claim took job by job: the jobs in the order of the claim, and the rows that it stepped over."""

    jobs: tuple[Claimed, ...] = ()
    bad: tuple[BadRow, ...] = ()


class EachDone(Struct, frozen=True):
    """What a service did row by row: the jobs that it handled, and the rows that it passed over."""

    done: tuple[int, ...] = ()
    bad: tuple[BadRow, ...] = ()


class Reaped(Struct, frozen=True):
    """What one pass of the reaper did."""

    leases: int = 0  # expired leases taken away
    aborted: tuple[int, ...] = ()  # jobs whose attempt ended as expired (or unknown)
    recovered: tuple[int, ...] = ()  # committed jobs brought to succeeded
    passed_over: int = 0  # expired leases that stay, since somebody has jobs of theirs locked
    bad: tuple[BadRow, ...] = ()  # only of `lease_reap_each`: what could not be taken away


class Pruned(Struct, frozen=True):
    """How many jobs went, and where to go on; `next_id` None means the end was reached."""

    jobs: int
    next_id: int | None


class Prunable(Struct, frozen=True):
    """The jobs that may go, and where to go on; `next_id` None means the end was reached."""

    ids: tuple[int, ...]
    next_id: int | None


class ResultsDropped(Struct, frozen=True):
    """How many results went, and where to go on; `next_id` None means the end was reached."""

    results: int
    next_id: int | None


class Count(Struct, frozen=True):
    """Number of jobs of a tenant and queue in a state."""

    tenant: str
    queue: str
    state: str
    jobs: int


class JobRow(Struct, frozen=True, kw_only=True):
    """A job as it stands."""

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
    result_dropped_at: datetime | None = None  # its task's time for it was over


class ExecutionRow(Struct, frozen=True, kw_only=True):
    """An attempt at a job, ended or in flight (the view `executions`). `counted` is whether it counts against the
    retries."""

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
    """A place in the record: a search goes on with the lines before it."""

    at: datetime
    n: int


class RecordPage(Struct, frozen=True):
    """Lines of the record that were found, and the place to go on after; None at the end."""

    rows: list[TransitionRow]
    next: RecordPlace | None


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
