"""The reference model of what is around the jobs: workers, services, schedules, operations and recovery."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Unpack

from detent.errors import DetentError, LeaseLost, NotFound
from detent.model.clock import from_micros, to_micros
from detent.model.records import Cancelled, ClaimedEach, Enqueued, JobPlace, Moved, NewJob, ResultsDropped
from detent.model.service_records import (
    Agenda,
    Declared,
    DeclaredKind,
    Fire,
    KeysForgotten,
    NewOperation,
    NewSchedule,
    OperationRow,
    ScheduleRow,
    TaskTimes,
    WorkerSeen,
)
from detent.model.workflow_records import NewStep, StepRecorded
from detent.store.jobs.contract import ClaimTerms
from detent.store.jobs.move_rules import moved_to
from detent.store.migrate import load
from detent.store.operations.stored_request import asked, operation_row
from prove.reference.model import Model
from prove.reference.rows import (
    Declaration,
    Job,
    JobKey,
    Operation,
    Recovery,
    Schedule,
    ScheduleFire,
    Service,
    Times,
    Watch,
    Worker,
    Workflow,
    WorkflowStep,
)
from prove.reference.rules import SECOND, micros, undeclared

DAY = 86_400 * SECOND
_SCHEMA = max(step.oldest_code for step in load("sqlite"))


def _earliest(moments: Iterable[int]) -> datetime | None:
    first = min(moments, default=None)
    return None if first is None else from_micros(first)


class WholeModel(Model):
    """Every verb that changes anything."""

    def cancel_find(self, items: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        rows = (self.job.get(job_id) for job_id, _ in items)
        wanted = {(row.id, row.attempt) for row in rows if row is not None and row.cancel_requested_at is not None}
        return sorted(item for item in items if item in wanted and self.job[item[0]].state == "running")

    def __init__(self, clock: int = 0) -> None:
        super().__init__(clock)
        self.worker: dict[int, Worker] = {}
        self.service: dict[str, Service] = {}
        self.declaration: dict[tuple[str, str, int], Declaration] = {}
        self.schedule: dict[str, Schedule] = {}
        self.fired: dict[tuple[str, int], ScheduleFire] = {}
        self.operation: dict[int, Operation] = {}
        self.recovery: dict[str, Recovery] = {}
        self.task_times: dict[str, Times] = {}

    # -- keys --------------------------------------------------------------------------------------------------

    def job_claim_each(self, skip: Sequence[int], **terms: Unpack[ClaimTerms]) -> ClaimedEach:
        return ClaimedEach(tuple(self.job_claim(**terms)))

    def key_expire(self, limit: int) -> int:
        return self.keys_go(lambda row: row.expires_at is not None and row.expires_at <= self.clock)

    def key_forget(self, after: tuple[str, str], limit: int) -> KeysForgotten:
        gone = self.keys_go(lambda row: row.expires_at is None and not row.until_claim and row.job_id not in self.job)
        return KeysForgotten(gone, None)

    def keys_go(self, goes: Callable[[JobKey], bool]) -> int:
        before = len(self.job_key)
        self.job_key = {place: row for place, row in self.job_key.items() if not goes(row)}
        return before - len(self.job_key)

    # -- workers and services ----------------------------------------------------------------------------------

    def failure_report_take(self, tasks: Sequence[str], limit: int, seconds: float) -> list[tuple[int, int]]:
        free = [row for row in self.failure_report.values() if row.taken_until is None or row.taken_until <= self.clock]
        taken = sorted((row.job_id, row.attempt) for row in free if row.task in tasks)[:limit]
        self.failure_report_keep(taken, seconds)
        return taken

    def failure_report_keep(self, failures: Sequence[tuple[int, int]], seconds: float) -> None:
        for one in failures:
            if one in self.failure_report:
                self.failure_report[one] = self.failure_report[one]._replace(taken_until=self.clock + micros(seconds))

    def step_record(self, items: Sequence[NewStep]) -> list[StepRecorded | DetentError]:
        return [self._record_step(item) for item in items]

    def _record_step(self, item: NewStep) -> StepRecorded | DetentError:
        lost = self.lost(item.job_id, item.attempt)
        if lost is not None:
            return lost
        job = self.job[item.job_id]
        if job.committed_at is not None:
            return LeaseLost(item.job_id, item.attempt, "it has committed")
        place = (item.job_id, item.generation, item.path)
        old = self.workflow_step.get(place)
        if old is not None:
            return StepRecorded(item.path, False, old.kind, old.value, None, from_micros(old.done_at))
        self.workflow.setdefault(job.id, Workflow(job.id, item.version, item.generation, job.id, 0, 0))
        now = self.now_for(job)
        self.workflow_step[place] = WorkflowStep(
            *(*place, item.seq, item.kind, item.attempt, now - micros(item.ran_for), now, item.value)
        )
        return StepRecorded(item.path, True, item.kind, item.value, None, from_micros(now))

    def failure_report_done(self, failures: Sequence[tuple[int, int]]) -> None:
        for one in failures:
            self.failure_report.pop(one, None)

    def worker_seen(self, seen: WorkerSeen) -> Agenda:
        told = {name: getattr(seen, name) for name in WorkerSeen.__struct_fields__}
        (watch,) = self.watch
        if watch.watched_at is None or not self.clock - micros(1) <= watch.watched_at <= self.clock:
            gap = watch.gap_from, watch.gap_to
            if watch.watched_at is not None and watch.watched_at < self.clock - micros(5):
                gap = watch.watched_at, self.clock
            self.watch = [Watch(self.clock, *gap)]
        old = self.worker.get(seen.id)
        self.worker[seen.id] = Worker(**told, started_at=old.started_at if old else self.clock, seen_at=self.clock)
        if old is None:
            self.worker = {n: row for n, row in self.worker.items() if row.seen_at >= self.clock - DAY}
        expiries = [row.expires_at for row in self.ready.values()] + [row.expires_at for row in self.waiting.values()]
        return Agenda(
            now=from_micros(self.clock),
            promote_at=_earliest(row.due_at for row in self.waiting.values() if row.limit_key is None),
            expire_at=_earliest(at for at in expiries if at is not None),
            reap_at=_earliest(row.expires_at for row in self.lease.values()),
            lease_checksum=sum(row.expires_at for row in self.lease.values()) or None,
            schedule_at=_earliest(row.next_at for row in self.schedule.values() if row.paused_at is None),
            operations=any(row.state == "running" for row in self.operation.values()),
            recovery=bool(self.recovery),
            failure_reports=bool(self.failure_report),
            schema_demanded=_SCHEMA,
        )

    def worker_gone(self, worker_id: int) -> None:
        self.worker.pop(worker_id, None)

    def service_take(self, name: str, holder: int, seconds: float) -> int | None:
        row = self.service.get(name) or Service(name, holder, 1, self.clock + 1)
        expired = row.expires_at <= self.clock
        if row.holder != holder and not expired:
            return None
        term = row.term + (row.holder != holder or expired)
        self.service[name] = Service(name, holder, term, self.clock + micros(seconds))
        return term

    def service_drop(self, name: str, holder: int) -> None:
        row = self.service.get(name)
        if row is not None and row.holder == holder:
            self.service[name] = row._replace(expires_at=min(row.expires_at, self.clock))

    # -- what is declared in code ------------------------------------------------------------------------------

    def declaration_put(self, kind: DeclaredKind, name: str, fingerprint: str, again: bool) -> Declared:
        known = [row for row in self.declaration.values() if (row.kind, row.name) == (kind, name)]
        newest = max(known, key=lambda row: row.n, default=Declaration(kind, name, 0, "", 0))
        if newest.fingerprint == fingerprint:
            return "same"
        if not again and any(row.fingerprint == fingerprint for row in known):
            return "replaced"
        self.declaration[kind, name, newest.n + 1] = Declaration(kind, name, newest.n + 1, fingerprint, self.clock)
        return "new"

    # -- schedules ---------------------------------------------------------------------------------------------

    def schedule_put(self, item: NewSchedule) -> ScheduleRow:
        told = {name: getattr(item, name) for name in NewSchedule.__struct_fields__ if name != "next_at"}
        old = self.schedule.get(item.name)
        next_at = to_micros(item.next_at, field="next_at")
        if old is None:
            self.schedule[item.name] = Schedule(**told, next_at=next_at, changed_at=self.clock)
            self.log_of("schedule", item.name, None, "active", "create", "client", None, tenant=item.tenant)
        elif old != old._replace(**told):
            same_times = (old.cron, old.zone) == (item.cron, item.zone)
            changed = old._replace(**told, next_at=old.next_at if same_times else next_at, changed_at=self.clock)
            self.schedule[item.name] = changed
            self.log_of("schedule", item.name, old.state, old.state, "change", "client", None, tenant=item.tenant)
        fields = self.schedule[item.name]._asdict()
        times = {name: value and from_micros(value) for name, value in fields.items() if name.endswith("_at")}
        return ScheduleRow(**fields | times)

    def schedule_remove(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        row = self.schedule.pop(name, None)
        if row is None:
            return NotFound("schedule", name)
        self.log_of("schedule", name, row.state, "removed", "remove", actor, reason, tenant=row.tenant)
        self.fired = {place: fire for place, fire in self.fired.items() if fire.schedule != name}
        return Moved(name, "removed", True)

    def schedule_pause(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        row = self.schedule.get(name)
        if row is None:
            return NotFound("schedule", name)
        if row.paused_at is None:
            self.log_of("schedule", name, "active", "paused", "pause", actor, reason, tenant=row.tenant)
            self.schedule[name] = row._replace(paused_at=self.clock, paused_by=actor, reason=reason)
        return Moved(name, "paused", row.paused_at is None)

    def schedule_run(self, name: str, job: NewJob, actor: str, reason: str | None = None) -> Enqueued | DetentError:
        row = self.schedule.get(name)
        if row is None:
            return NotFound("schedule", name)
        self.log_of("schedule", name, row.state, row.state, "run_now", actor, reason, tenant=row.tenant)
        (answer,) = self.job_enqueue([job])
        return answer

    def schedule_resume(
        self, name: str, next_at: datetime, actor: str, reason: str | None = None
    ) -> Moved | DetentError:
        row = self.schedule.get(name)
        if row is None:
            return NotFound("schedule", name)
        if row.paused_at is not None:
            self.log_of("schedule", name, "paused", "active", "resume", actor, reason, tenant=row.tenant)
            then = to_micros(next_at, field="next_at")
            self.schedule[name] = row._replace(paused_at=None, paused_by=None, reason=None, next_at=then)
        return Moved(name, "active", row.paused_at is not None)

    def schedule_fire(
        self, name: str, expected: datetime, fires: Sequence[Fire], next_at: datetime
    ) -> list[int] | None:
        row = self.schedule.get(name)
        if row is None or row.paused_at is not None or row.next_at != to_micros(expected, field="expected"):
            return None
        ticks = [to_micros(fire.fire_at, field="fire_at") for fire in fires]
        following = to_micros(next_at, field="next_at")
        self.schedule[name] = row._replace(next_at=following, last_at=max(ticks, default=row.last_at))
        jobs = []
        for tick, fire in zip(ticks, fires, strict=True):
            if (name, tick) not in self.fired:
                job_id = None if fire.job is None else fire.job.id
                self.fired[name, tick] = ScheduleFire(name, tick, job_id, self.clock)
                jobs += [] if fire.job is None else [fire.job]
        kept = self.clock - 30 * DAY
        self.fired = {
            place: fire for place, fire in self.fired.items() if fire.schedule != name or fire.fire_at >= kept
        }
        made = []
        for job, answer in zip(jobs, self.job_enqueue(jobs), strict=True):
            assert isinstance(answer, Enqueued)
            if answer.created:
                made.append(job.id)
            else:
                place = next(place for place, fire in self.fired.items() if fire.job_id == job.id)
                self.fired[place] = self.fired[place]._replace(job_id=answer.job_id)
        return made

    # -- many jobs at once -------------------------------------------------------------------------------------

    def job_move(
        self, ids: Sequence[int], queue: str | None, priority: int | None, actor: str, reason: str | None = None
    ) -> list[Moved | DetentError]:
        return [self._move_job(job_id, queue, priority, actor, reason) for job_id in ids]

    def _move_job(
        self, job_id: int, queue: str | None, priority: int | None, actor: str, reason: str | None
    ) -> Moved | DetentError:
        job = self.job.get(job_id)
        if job is None:
            return NotFound("job", str(job_id))
        if job.state != "pending":
            return undeclared(job, "pending")
        to = job._replace(
            queue=job.queue if queue is None else queue, priority=job.priority if priority is None else priority
        )
        if to.lane == job.lane:
            return Moved(str(job_id), "pending", False)
        self.log(job, "pending", "move", actor, reason)
        self.transition_log[-1] = self.transition_log[-1]._replace(metadata=moved_to(queue, priority))
        self.job[job_id] = to
        lane = self.lane_of(to)
        if job_id in self.ready:
            self.ready[job_id] = self.ready[job_id]._replace(lane=lane)
        else:
            self.waiting[job_id] = self.waiting[job_id]._replace(lane=lane, priority=to.priority)
        return Moved(str(job_id), "pending", True)

    def operation_start(self, item: NewOperation) -> OperationRow:
        if item.id not in self.operation:
            chosen, argument = asked(item)
            until = max(self.job, default=0)
            self.operation[item.id] = Operation(
                *(item.id, item.action, "running", chosen, argument, item.actor, item.reason),
                *(until, 0, 0, 0, 0, self.clock, None),
            )
            self.log_of(
                "operation", str(item.id), None, "running", item.action, item.actor, item.reason, metadata=chosen
            )
        return self._operation(item.id)

    def operation_step(self, operation_id: int, limit: int) -> OperationRow | DetentError:
        row = self.operation.get(operation_id)
        if row is None:
            return NotFound("operation", str(operation_id))
        if row.state == "running":
            looked = sorted(n for n in self.job if row.after_id < n <= row.until_id)[:limit]
            answers = self._act(self._operation(operation_id), looked)
            changed = sum(isinstance(said, Cancelled) or (isinstance(said, Moved) and said.changed) for said in answers)
            is_done = len(looked) < limit
            self.operation[operation_id] = row._replace(
                after_id=row.until_id if is_done else looked[-1],
                looked_at=row.looked_at + len(looked),
                changed=row.changed + changed,
                refused=row.refused + sum(isinstance(said, DetentError) for said in answers),
                state="done" if is_done else "running",
                finished_at=self.clock if is_done else None,
            )
            if is_done:
                self.log_of("operation", str(operation_id), "running", "done", "complete", "system", None)
        return self._operation(operation_id)

    def _act(self, row: OperationRow, looked: Sequence[int]) -> Sequence[Cancelled | Moved | DetentError]:
        ids = [job_id for job_id in looked if self._fits(self.job[job_id], row)]
        match row.action:
            case "retry":
                return self.job_retry(ids, row.actor, row.reason)
            case "cancel":
                return self.job_cancel(ids, row.actor, row.reason)
            case "discard":
                return self.job_discard(ids, row.actor, row.reason)
            case "move":
                return self.job_move(ids, row.to_queue, row.to_priority, row.actor, row.reason)

    def _fits(self, job: Job, row: OperationRow) -> bool:
        wanted = ((row.job_state, job.state), (row.task, job.task), (row.queue, job.queue), (row.tenant, job.tenant))
        asked_already = job.state == "running" and job.cancel_requested_at is not None
        nothing_to_do = row.action == "cancel" and (job.state == "cancelled" or asked_already)
        return all(want is None or want == found for want, found in wanted) and not nothing_to_do

    def operation_cancel(self, operation_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        row = self.operation.get(operation_id)
        if row is None:
            return NotFound("operation", str(operation_id))
        if row.state != "running":
            return Moved(str(operation_id), row.state, False)
        self.operation[operation_id] = row._replace(state="cancelled", finished_at=self.clock)
        self.log_of("operation", str(operation_id), "running", "cancelled", "cancel", actor, reason)
        return Moved(str(operation_id), "cancelled", True)

    def _operation(self, operation_id: int) -> OperationRow:
        fields = self.operation[operation_id]._asdict()
        return operation_row(fields | {n: fields[n] and from_micros(fields[n]) for n in ("created_at", "finished_at")})

    # -- silence -----------------------------------------------------------------------------------------------

    def task_times_put(self, items: Sequence[TaskTimes]) -> None:
        for item in items:
            row = Times(item.task, item.stale_after, item.stalled_after, item.result_ttl)
            self.task_times.pop(item.task, None)
            if row[1:] != (None, None, None):
                self.task_times[item.task] = row

    def result_drop(self, after: JobPlace | None, limit: int) -> ResultsDropped:
        times = [times.result_ttl for times in self.task_times.values() if times.result_ttl is not None]
        before = self.clock - round(min(times) * 1_000_000) + 1 if times else 0
        looked, then = self.created_before(before, after, limit)
        over = [job for job in map(self.job.__getitem__, looked) if self.is_over(job)]
        for job in over:
            self.job[job.id] = job._replace(result=None, result_dropped_at=self.clock)
        return ResultsDropped(len(over), then)

    def is_over(self, job: Job) -> bool:
        said = self.task_times.get(job.task)
        if said is None or said.result_ttl is None or job.result is None or job.state != "succeeded":
            return False
        return (job.finished_at or 0) + micros(said.result_ttl) <= self.clock

    def recovery_set(
        self,
        queue: str,
        stale_after: float | None,
        stalled_after: float | None,
        actor: str,
        reason: str | None = None,
    ) -> Moved:
        old = self.recovery.get(queue)
        state = "approval" if stale_after is None and stalled_after is None else "automatic"
        was = (None, None) if old is None else (old.stale_after, old.stalled_after)
        if was == (stale_after, stalled_after):
            return Moved(queue, state, False)
        self.log_of("recovery", queue, "automatic" if old else "approval", state, "set", actor, reason)
        self.recovery.pop(queue, None)
        if state == "automatic":
            self.recovery[queue] = Recovery(queue, stale_after, stalled_after, actor, reason, self.clock)
        return Moved(queue, state, True)
