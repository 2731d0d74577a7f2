"""The reference model's ground: the tables of the record, and the rules that its verbs share.

`lost` is the fence, `end` the rules by which an attempt ends that did not succeed. Rows are immutable: a rule looks,
decides and replaces rows. The clock is a number of microseconds that the test sets.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from msgspec.structs import replace

from detent.errors import (
    InvalidTransition,
    LeaseLost,
)
from detent.lifecycle.library import JOB
from detent.model.clock import from_micros, to_micros
from detent.model.records import (
    Abort,
    Aborted,
    Claimed,
    JobPlace,
    Outcome,
)
from prove.reference.rows import (
    Dead,
    Event,
    Execution,
    FailureReport,
    Horizon,
    Job,
    JobKey,
    Lane,
    Lease,
    Queue,
    Ready,
    TransitionLog,
    Waiting,
    Watch,
    Workflow,
    WorkflowStep,
)

T = TypeVar("T")
SECOND = 1_000_000
EVENT_WINDOW = 10 * SECOND
GIVEN_BACK = ("released", "snoozed", "throttled")
TIMES = ("sleep", "deadline", "timeout", "token")
MAY_BE_UNKNOWN = ("expired", "crashed", "timed_out")


class Record:
    """The whole record as dictionaries of rows, and the only ways in which they change."""

    def __init__(self, clock: int = 0) -> None:
        self.clock = clock
        self.next_id = 1
        self.job: dict[int, Job] = {}
        self.job_key: dict[tuple[str, str], JobKey] = {}
        self.queue: dict[str, Queue] = {}
        self.lane: dict[Lane, Lane] = {}
        self.workflow: dict[int, Workflow] = {}
        self.workflow_step: dict[tuple[int, int, str], WorkflowStep] = {}
        self.ready: dict[int, Ready] = {}
        self.waiting: dict[int, Waiting] = {}
        self.lease: dict[int, Lease] = {}
        self.execution: dict[tuple[int, int], Execution] = {}
        self.transition_log: list[TransitionLog] = []
        self.event: dict[tuple[int, int], Event] = {}
        self.dead: dict[int, Dead] = {}
        self.watch: list[Watch] = [Watch()]
        self.failure_report: dict[tuple[int, int], FailureReport] = {}
        self.horizon: list[Horizon] = []

    def now_for(self, job: Job) -> int:
        """The clock, but never before anything that has happened to the job."""
        past = (
            job.created_at,
            job.leased_at,
            job.started_at,
            job.committed_at,
            job.finished_at,
            job.cancel_requested_at,
        )
        return max(self.clock, *(at for at in past if at is not None))

    def lost(self, job_id: int, attempt: int) -> LeaseLost | None:
        """The fence: why this caller is not the holder, or None where it is."""
        job = self.job.get(job_id)
        if job is None:
            return LeaseLost(job_id, attempt, "no such job")
        if job.state != "running":
            return LeaseLost(job_id, attempt, f"the job is {job.state}")
        if job.attempt != attempt:
            return LeaseLost(job_id, attempt, f"attempt {job.attempt} is current")
        lease = self.lease.get(job.lease_id or 0)
        if lease is None or lease.expires_at <= self.clock:
            return LeaseLost(job_id, attempt, "its lease has expired")
        return None

    def committed_by(self, job: Job, attempt: int) -> bool:
        return job.state == "running" and job.attempt == attempt and job.committed_at is not None

    def held_by(self, lease_id: int) -> list[Job]:
        held = (job for job in self.job.values() if job.state == "running" and job.lease_id == lease_id)
        return sorted(held, key=lambda job: job.id)

    def mark_started(self, job: Job, after: float | None = None) -> None:
        if job.started_at is None:
            self.job[job.id] = job._replace(started_at=self.begun_at(job, after))

    def begun_at(self, job: Job, after: float | None) -> int:
        """When the function was called: `after` seconds from the claim, never after now or a start on record."""
        assert job.leased_at is not None
        known = first(job.started_at, self.now_for(job))
        return known if after is None else max(job.leased_at, min(known, job.leased_at + int(after * 1_000_000)))

    def mark_committed(self, job: Job, result: str | None) -> None:
        now = self.now_for(job)
        self.job[job.id] = job._replace(
            started_at=first(job.started_at, now),
            committed_at=first(job.committed_at, now),
            result=first(result, job.result),
        )

    def succeed(self, job: Job, worker: str, result: str | None, begun_after: float | None = None) -> None:
        """Running to succeeded; committed in the same stroke where it was not."""
        now = self.now_for(job)
        job = job._replace(started_at=self.begun_at(job, begun_after))
        self.mark_committed(job, result)
        job = self.job[job.id]._replace(state="succeeded", ended=job.attempt, finished_at=now, error=None)
        self.ended(job, worker, "done", None, None, True, now)

    def expires_free(self, job: Job) -> bool:
        """Whether an attempt that expires now does not count: five times for each job, but fewer than attempts_max."""
        before = [e for e in self.execution.values() if e.job_id == job.id and e.outcome == "expired"]
        return sum(not e.counted for e in before) < min(5, job.attempts_max - 1)

    def unwatched(self, grace: float | None) -> tuple[int, int]:
        """The gap in which no worker was seen, while leases that ran out in it are spared."""
        (row,) = self.watch
        watched_at, gap_from, gap_to = row
        if watched_at is not None and watched_at < self.clock - micros(5):
            gap_from, gap_to = watched_at, self.clock
        if grace is None or gap_from is None or gap_to is None or gap_to <= self.clock - micros(grace):
            return 0, 0
        return gap_from, gap_to

    def end(self, job: Job, item: Abort, worker: str) -> Aborted:
        """The rules 2 to 6 of the contract, the first that fits."""
        now = self.now_for(job)
        if item.outcome == "cancelled" and job.cancel_requested_at is None:
            item = replace(item, outcome="released")
        if item.begun_after is not None:
            job = job._replace(started_at=self.begun_at(job, item.begun_after))
        if self.has_progressed(job):
            job = job._replace(spared=max(job.spared, job.attempt - 1))
        outcome: Outcome = item.outcome
        state: Literal["pending", "cancelled", "quarantined", "failed"]
        spared = before = job.spared
        free = outcome in GIVEN_BACK or (outcome == "expired" and self.expires_free(job))
        reason = "fatal" if item.fatal else "attempts used up"
        if outcome == "unknown" or (outcome in MAY_BE_UNKNOWN and not job.idempotent and job.started_at is not None):
            if told_by_probe(job, item):
                state, spared = "pending", spared + (outcome == "unknown")
                job = job._replace(expires_at=None)
                outcome = "unknown"
            else:
                outcome, state, reason = "unknown", "quarantined", "unknown"
        elif job.effect_evidence == "marker" and would_rest(job, item, free):
            outcome, state, reason = "unknown", "quarantined", "unknown"
        elif job.cancel_requested_at is not None:
            state = "cancelled"
        elif free:
            state, spared = "pending", spared + 1
        elif item.fatal or job.attempt - job.spared >= job.attempts_max:
            state = "quarantined" if job.dead_letter else "failed"
        else:
            state = "pending"
        rests = state != "pending"
        due_at = job.due_at if rests else now + micros(item.delay)
        job = job._replace(
            state=state,
            ended=job.attempt,
            spared=spared,
            due_at=due_at,
            error=item.error if rests else None,
            finished_at=now if rests else None,
        )
        self.ended(job, worker, outcome, item.error, None if rests else due_at, spared == before, now)
        if state == "pending":
            self.enter_queue(job, holds_key=False)
        if state == "quarantined":
            self.dead[job.id] = Dead(job.id, job.tenant, job.queue, job.task, reason, now)
        if state in ("quarantined", "failed"):
            self.failure_report[job.id, job.attempt] = FailureReport(job.id, job.attempt, job.task)
        return Aborted(job.id, job.attempt, outcome, state)

    def ended(
        self, job: Job, worker: str, outcome: str, error: str | None, due_at: int | None, counted: bool, now: int
    ) -> None:
        """The job leaves running, and the row of its attempt is written, once."""
        assert job.leased_at is not None
        assert (job.id, job.attempt) not in self.execution
        self.job[job.id] = job
        self.execution[job.id, job.attempt] = Execution(
            job_id=job.id,
            attempt=job.attempt,
            worker=worker,
            leased_at=job.leased_at,
            started_at=job.started_at,
            committed_at=job.committed_at,
            done_at=now if outcome == "done" else None,
            aborted_at=None if outcome == "done" else now,
            outcome=outcome,
            error=error,
            next_state=job.state,
            next_due_at=due_at,
            counted=counted,
        )

    def has_progressed(self, job: Job) -> bool:
        """Whether the current attempt has recorded a step that is not a time."""
        steps = (step for step in self.workflow_step.values() if step.job_id == job.id and step.attempt == job.attempt)
        return any(step.kind not in TIMES for step in steps)

    def lane_of(self, job: Job) -> Lane:
        """The lane in which a job stands while it is pending; made if it is new."""
        begun = self.workflow.get(job.id)
        lane = job.lane._replace(version=0 if begun is None else begun.version)
        return self.lane.setdefault(lane, lane)

    def enter_queue(self, job: Job, *, holds_key: bool) -> None:
        """A pending job gets its one row: ready where it is due, waiting where it is not."""
        lane = self.lane_of(job)
        if job.due_at <= self.now_for(job):
            self.ready[job.id] = Ready(lane, job.due_at, job.id, holds_key, job.expires_at)
        else:
            self.waiting[job.id] = Waiting(job.id, lane, job.due_at, holds_key, job.expires_at, None, job.priority)

    def leave_queue(self, job: Job) -> Job:
        """A job that stops being pending gives back its row, and the key it held only until then."""
        self.ready.pop(job.id, None)
        self.waiting.pop(job.id, None)
        self.job_key = {
            place: row for place, row in self.job_key.items() if row.job_id != job.id or not row.until_claim
        }
        return job

    def put_away(self, job: Job, to_state: str, trigger: str, actor: str, reason: str | None) -> None:
        """Logged moves to a state of rest: cancel, expire, discard and force."""
        now = self.log(job, to_state, trigger, actor, reason)
        self.leave_queue(job)
        self.dead.pop(job.id, None)
        if to_state == "quarantined":
            self.dead[job.id] = Dead(job.id, job.tenant, job.queue, job.task, "forced", now)
        committed_at = first(job.committed_at, now) if to_state == "succeeded" else job.committed_at
        self.job[job.id] = job._replace(state=to_state, finished_at=now, committed_at=committed_at)

    def log(self, job: Job, to_state: str, trigger: str, actor: str, reason: str | None) -> int:
        now = self.now_for(job)
        self.transition_log.append(
            TransitionLog(
                tenant=job.tenant,
                entity="job",
                entity_id=str(job.id),
                job_id=job.id,
                attempt=job.attempt,
                from_state=job.state,
                to_state=to_state,
                trigger=trigger,
                actor=actor,
                reason=reason,
                metadata=None,
                correlation_id=job.correlation_id,
                forced=trigger == "force",
                at=now,
            )
        )
        return now

    def is_paused(self, queue: str) -> bool:
        row = self.queue.get(queue)
        return row is not None and row.paused_at is not None

    def log_of(
        self,
        entity: str,
        entity_id: str,
        from_state: str | None,
        to_state: str,
        trigger: str,
        actor: str,
        reason: str | None,
        *,
        tenant: str = "",
        metadata: str | None = None,
    ) -> None:
        """The line of a change of something that is no job."""
        self.transition_log.append(
            TransitionLog(
                *(tenant, entity, entity_id, None, 0, from_state, to_state, trigger, actor, reason, metadata),
                *(None, False, self.clock),
            )
        )

    def created_before(self, before: int, after: JobPlace | None, limit: int) -> tuple[list[int], JobPlace | None]:
        """Return the jobs in the order of their creation, after a place, and the place to continue after."""
        first = (0, 0) if after is None else (to_micros(after.created_at, field="after"), after.id)
        places = sorted((job.created_at, job.id) for job in self.job.values() if job.created_at < before)
        looked = [place for place in places if place > first][:limit]
        then = JobPlace(from_micros(looked[-1][0]), looked[-1][1]) if looked and len(looked) == limit else None
        return [job_id for _, job_id in looked], then


def micros(seconds: float) -> int:
    return round(seconds * SECOND)


def first(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


def undeclared(job: Job, to_state: str) -> InvalidTransition:
    return InvalidTransition("job", str(job.id), job.state, to_state, JOB.allowed(job.state))


def claimed(job: Job) -> Claimed:
    return Claimed(
        job_id=job.id,
        attempt=job.attempt,
        task=job.task,
        payload=job.payload,
        tenant=job.tenant,
        queue=job.queue,
        metadata=job.metadata,
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
        run_id=job.run_id,
        spared=job.spared,
        attempts_max=job.attempts_max,
        committed=job.committed_at is not None,
    )


def told_by_probe(job: Job, item: Abort) -> bool:
    """Whether an unknown effect goes back for the task's probe: one attempt beyond the last is granted for it."""
    if job.effect_evidence != "probe" or item.fatal:
        return False
    return item.outcome == "unknown" or job.attempt - job.spared <= job.attempts_max


def would_rest(job: Job, item: Abort, free: bool) -> bool:
    """Whether the rules 3 or 5 would end the job."""
    if job.cancel_requested_at is not None:
        return True
    return not free and (item.fatal or job.attempt - job.spared >= job.attempts_max)
