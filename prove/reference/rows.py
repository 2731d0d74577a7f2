"""The rows of the reference model: the tables of the record, column by column, with times as whole microseconds.

A surrogate number that means nothing outside its database (the id of a lane, the n of a log line) is not there: a lane
is written out, and log lines stand in order.
"""

from __future__ import annotations

from typing import NamedTuple

from detent.model.workflow_records import StepKind


class Job(NamedTuple):
    id: int
    tenant: str
    task: str
    queue: str
    priority: int
    due_at: int
    expires_at: int | None
    payload: str
    metadata: str | None
    correlation_id: str | None
    traceparent: str | None
    run_id: int | None
    nonce: int
    created_at: int
    attempts_max: int
    dead_letter: bool
    idempotent: bool
    limit_key: str | None
    cost: int | None = None
    state: str = "pending"
    attempt: int = 0
    spared: int = 0
    ended: int = 0
    result: str | None = None
    error: str | None = None
    finished_at: int | None = None
    cancel_requested_at: int | None = None
    cancel_requested_by: str | None = None
    cancel_reason: str | None = None
    lease_id: int | None = None
    leased_at: int | None = None
    started_at: int | None = None
    committed_at: int | None = None
    effect_evidence: str | None = None
    result_dropped_at: int | None = None
    parent_id: int | None = None

    @property
    def lane(self) -> Lane:
        return Lane(self.queue, self.task, self.tenant, self.priority, self.limit_key or "")


class JobKey(NamedTuple):
    tenant: str
    key: str
    job_id: int
    fingerprint: str
    expires_at: int | None
    until_claim: bool


class Declaration(NamedTuple):
    kind: str
    name: str
    n: int
    fingerprint: str
    at: int


class Queue(NamedTuple):
    name: str
    paused_at: int | None
    paused_by: str | None
    reason: str | None


class Lane(NamedTuple):
    queue: str
    task: str
    tenant: str
    priority: int
    limit_key: str = ""
    version: int = 0


class Workflow(NamedTuple):
    job_id: int
    version: int
    generation: int
    root_id: int
    depth: int
    parks: int


class WorkflowStep(NamedTuple):
    job_id: int
    generation: int
    path: str
    seq: int
    kind: StepKind
    attempt: int
    began_at: int
    done_at: int
    value: str | None


class Ready(NamedTuple):
    lane: Lane
    ready_at: int
    job_id: int
    holds_key: bool
    expires_at: int | None


class Waiting(NamedTuple):
    job_id: int
    lane: Lane
    due_at: int
    holds_key: bool
    expires_at: int | None
    limit_key: str | None
    priority: int


class Lease(NamedTuple):
    id: int
    worker: str
    leased_at: int
    expires_at: int
    job_ids: tuple[int, ...]


class Execution(NamedTuple):
    job_id: int
    attempt: int
    worker: str
    leased_at: int
    started_at: int | None
    committed_at: int | None
    done_at: int | None
    aborted_at: int | None
    outcome: str
    error: str | None
    next_state: str
    next_due_at: int | None
    counted: bool


class TransitionLog(NamedTuple):
    tenant: str
    entity: str
    entity_id: str
    job_id: int | None
    attempt: int
    from_state: str | None
    to_state: str
    trigger: str
    actor: str
    reason: str | None
    metadata: str | None
    correlation_id: str | None
    forced: bool
    at: int


class Event(NamedTuple):
    job_id: int
    seq: int
    attempt: int
    level: str
    message: str
    payload: str | None
    key: str | None
    at: int


class Dead(NamedTuple):
    job_id: int
    tenant: str
    queue: str
    task: str
    reason: str
    quarantined_at: int


class Horizon(NamedTuple):
    before: int
    actor: str
    at: int


class Worker(NamedTuple):
    id: int
    name: str
    host: str
    pid: int
    queues: tuple[str, ...] | None
    tasks: tuple[str, ...]
    slots: int
    running: int
    stopping: bool
    started_at: int
    seen_at: int
    versions: dict[str, tuple[int, ...]]


class Service(NamedTuple):
    name: str
    holder: int
    term: int
    expires_at: int


class Schedule(NamedTuple):
    name: str
    tenant: str
    cron: str
    zone: str
    catch_up: str
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
    next_at: int
    last_at: int | None = None
    paused_at: int | None = None
    paused_by: str | None = None
    reason: str | None = None
    changed_at: int = 0

    @property
    def state(self) -> str:
        return "active" if self.paused_at is None else "paused"


class ScheduleFire(NamedTuple):
    schedule: str
    fire_at: int
    job_id: int | None
    at: int


class Operation(NamedTuple):
    id: int
    action: str
    state: str
    filter: str
    argument: str | None
    actor: str
    reason: str | None
    until_id: int
    after_id: int
    looked_at: int
    changed: int
    refused: int
    created_at: int
    finished_at: int | None


class Times(NamedTuple):
    task: str
    stale_after: float | None
    stalled_after: float | None
    result_ttl: float | None


class Recovery(NamedTuple):
    queue: str
    stale_after: float | None
    stalled_after: float | None
    changed_by: str
    reason: str | None
    changed_at: int


class RateLimit(NamedTuple):
    key: str
    rate: float | None
    per: float
    burst: float
    concurrency_max: int | None
    tokens: float
    refilled_at: int
    paused_until: int | None = None
    throttled: int = 0
    throttled_at: int | None = None
    open_until: int | None = None
    template: str | None = None
    held_at: int | None = None


class Watch(NamedTuple):
    watched_at: int | None = None
    gap_from: int | None = None
    gap_to: int | None = None


class FailureReport(NamedTuple):
    job_id: int
    attempt: int
    task: str
    taken_until: int | None = None


class LimitMember(NamedTuple):
    kind: str
    name: str
    limit_key: str


class LimitSlot(NamedTuple):
    limit_key: str
    job_id: int
    attempt: int
    cost: float = 1.0
