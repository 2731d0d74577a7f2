"""The reference model: what every verb of the contract must do, said once more in plain Python, without a database.

It is the specification in code and knows nothing of locks, indexes or drivers. Answers are the contract's own records
and errors, so that any store can be held against it step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from detent.errors import (
    AlreadyCommitted,
    DetentError,
    IdConflict,
    InvalidInput,
    KeyConflict,
    LeaseLost,
    NotFound,
    NotUnknown,
)
from detent.lifecycle.library import JOB
from detent.model.clock import to_micros
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
    JobPlace,
    JobsPruned,
    Moved,
    NewEvent,
    NewJob,
    Reaped,
    Renewal,
    Started,
)
from prove.reference.limits import Limits
from prove.reference.rows import (
    Event,
    Horizon,
    Job,
    JobKey,
    Lease,
    Queue,
    Ready,
)
from prove.reference.rules import EVENT_WINDOW, claimed, micros, undeclared


class Model(Limits):
    """Every verb that changes the record of jobs."""

    # -- ids and the way in ------------------------------------------------------------------------------------

    def ids_reserve(self, count: int) -> int:
        first = self.next_id
        self.next_id += count
        return first

    def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        """One refusal at a time: it takes its group with it, and the rest is judged as if they had not been sent."""
        refused: dict[int, DetentError] = {}
        while True:
            answers = self._judge(items, refused)
            fault = next(
                (n for n, said in enumerate(answers) if isinstance(said, DetentError) and n not in refused), None
            )
            if fault is None:
                break
            group = items[fault].group
            for n, item in enumerate(items):
                if n == fault or (group is not None and item.group == group):
                    refused.setdefault(n, answers[fault])  # type: ignore[arg-type]
        for item, said in zip(items, answers, strict=True):
            if isinstance(said, Enqueued) and said.created:
                self._accept(item)
        return answers

    def _judge(self, items: Sequence[NewJob], refused: dict[int, DetentError]) -> list[Enqueued | DetentError]:
        ids = {job.id: (job.task, job.payload, job.nonce) for job in self.job.values()}
        keys = {
            place: (row.job_id, row.fingerprint)
            for place, row in self.job_key.items()
            if (row.expires_at is None or row.expires_at > self.clock)
            and (not row.key.startswith("detent:active:") or self._is_active(row.job_id))
        }
        answers: list[Enqueued | DetentError] = []
        for n, item in enumerate(items):
            same = (item.task, item.payload, item.nonce)
            place = (item.tenant, item.key or "")
            if n in refused:
                answers.append(refused[n])
            elif item.id in ids:
                answers.append(Enqueued(item.id, False) if ids[item.id] == same else IdConflict(item.id))
            elif item.key is not None and place in keys:
                holder, fingerprint = keys[place]
                known = fingerprint == item.fingerprint
                answers.append(Enqueued(holder, False) if known else KeyConflict(item.key, item.tenant, holder))
            else:
                ids[item.id] = same
                if item.key is not None:
                    keys[place] = (item.id, item.fingerprint)
                answers.append(Enqueued(item.id, True))
        return answers

    def _is_active(self, job_id: int) -> bool:
        return job_id in self.job and self.job[job_id].state in ("pending", "running")

    def _accept(self, new: NewJob) -> None:
        now = self.clock
        expires_at = None if new.expires_at is None else to_micros(new.expires_at, field="expires_at")
        due_at = now if new.due_at is None else max(now, to_micros(new.due_at, field="due_at"))
        job = Job(
            id=new.id,
            tenant=new.tenant,
            task=new.task,
            queue=new.queue,
            priority=new.priority,
            due_at=due_at,
            expires_at=expires_at,
            payload=new.payload,
            metadata=new.metadata,
            correlation_id=new.correlation_id,
            traceparent=new.traceparent,
            run_id=new.run_id,
            nonce=new.nonce,
            created_at=now,
            attempts_max=new.attempts_max,
            dead_letter=new.dead_letter,
            idempotent=new.idempotent,
            limit_key=new.limit_key,
            cost=new.cost,
            parent_id=new.parent_id,
        )
        self.job[job.id] = job
        if new.key is not None:
            gone = None if new.key_ttl is None else now + micros(new.key_ttl)
            self.job_key[new.tenant, new.key] = JobKey(
                new.tenant, new.key, new.id, new.fingerprint, gone, new.unique_pending
            )
        self.enter_queue(job, holds_key=new.unique_pending)

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
        versions: Mapping[str, Sequence[int]] | None = None,
    ) -> list[Claimed]:
        paused = {queue.name for queue in self.queue.values() if queue.paused_at is not None}
        lines: dict[str, list[Ready]] = {}
        for row in sorted(self.ready.values(), key=lambda row: (-row.lane.priority, row.ready_at, row.job_id)):
            lane = row.lane
            wanted = lane.task in tasks and (queues is None or lane.queue in queues)
            wanted &= lane.version == 0 or versions is None or lane.version in versions.get(lane.task, ())
            late = row.expires_at is not None and row.expires_at <= self.clock
            if wanted and not late and (tenants is None or lane.tenant in tenants) and lane.queue not in paused:
                lines.setdefault(lane.tenant, []).append(row)
        room = self.rooms(queues, tasks, limit, [row for line in lines.values() for row in line])
        taken: list[Claimed] = []
        last = after_tenant
        while len(taken) < limit:
            open_lines = {tenant: [row for row in line if self.fits(row, room)] for tenant, line in lines.items()}
            waiting = [tenant for tenant, line in open_lines.items() if line]
            if not waiting:
                break
            turn = min(waiting, key=lambda tenant: (last is not None and tenant <= last, tenant))
            row = open_lines[turn][0]
            lines[turn].remove(row)
            if not self.affords(row, room):
                continue
            last = turn
            self.spend(row, room)
            taken.append(self._claim(row.job_id, lease_id))
        if taken:
            ids = tuple(answer.job_id for answer in taken)
            self.lease[lease_id] = Lease(lease_id, worker, self.clock, self.clock + micros(lease), ids)
        return taken

    def _claim(self, job_id: int, lease_id: int) -> Claimed:
        job = self.leave_queue(self.job[job_id])
        job = job._replace(
            state="running",
            attempt=job.attempt + 1,
            lease_id=lease_id,
            leased_at=self.now_for(job),
            started_at=None,
            committed_at=None,
        )
        self.job[job_id] = job
        return claimed(job)

    def claim_find(self, lease_id: int) -> list[Claimed]:
        return [claimed(job) for job in self.held_by(lease_id)]

    def job_start(self, items: Sequence[tuple[int, int]]) -> list[Started | DetentError]:
        answers: list[Started | DetentError] = []
        for job_id, attempt in items:
            if lost := self.lost(job_id, attempt):
                answers.append(lost)
            else:
                self.mark_started(self.job[job_id])
                answers.append(Started(job_id, attempt))
        return answers

    def effect_begin(self, job_id: int, attempt: int, evidence: EffectEvidence) -> EffectBegun | DetentError:
        job = self.job.get(job_id)
        if job is not None and job.committed_at is not None:
            return AlreadyCommitted(job_id, job.attempt)
        if lost := self.lost(job_id, attempt):
            return lost
        self.mark_started(self.job[job_id])
        self.job[job_id] = self.job[job_id]._replace(effect_evidence=evidence)
        return EffectBegun(job_id, attempt, self.job[job_id].nonce)

    def lease_renew(self, lease_ids: Sequence[int], lease: float, begun: Mapping[int, float] = {}) -> list[Renewal]:
        answers = []
        for lease_id in lease_ids:
            row = self.lease.get(lease_id)
            if row is None:
                answers.append(Renewal(lease_id, False))
                continue
            self.lease[lease_id] = row._replace(expires_at=self.clock + micros(lease))
            for job in self.held_by(lease_id):
                if job.id in begun:
                    self.mark_started(job, begun[job.id])
            unwanted = tuple(
                (job.id, job.attempt) for job in self.held_by(lease_id) if job.cancel_requested_at is not None
            )
            answers.append(Renewal(lease_id, True, unwanted))
        return answers

    def event_append(self, items: Sequence[NewEvent]) -> list[Appended | DetentError]:
        return [self._append(item) for item in items]

    def _append(self, new: NewEvent) -> Appended | DetentError:
        if new.attempt is not None:
            if lost := self.lost(new.job_id, new.attempt):
                return lost
            self.mark_started(self.job[new.job_id])
        elif new.job_id not in self.job:
            return NotFound("job", str(new.job_id))
        job = self.job[new.job_id]
        attempt = job.attempt if new.attempt is None else new.attempt
        lines = [line for line in self.event.values() if line.job_id == job.id]
        for line in lines:
            if new.key is not None and line.key == new.key:
                return Appended(job.id, line.seq, False)
            if new.key is None and line.key is None and line.at > self.clock - EVENT_WINDOW:
                said = (line.attempt, line.level, line.message, line.payload)
                if said == (attempt, new.level, new.message, new.payload):
                    return Appended(job.id, line.seq, False)
        seq = len(lines) + 1
        now = max(self.now_for(job), *(line.at for line in lines), 0)
        self.event[job.id, seq] = Event(job.id, seq, attempt, new.level, new.message, new.payload, new.key, now)
        return Appended(job.id, seq, True)

    def job_commit(self, item: Commit) -> Committed | DetentError:
        job = self.job.get(item.job_id)
        if job is not None and job.committed_at is not None:
            return AlreadyCommitted(job.id, job.attempt)
        if lost := self.lost(item.job_id, item.attempt):
            return lost
        together = [replace(intent, group=0) for intent in item.intents]
        for answer in self.job_enqueue(together):
            if isinstance(answer, DetentError):
                return answer
        self.mark_committed(self.job[item.job_id], item.result)
        return Committed(item.job_id, item.attempt)

    def job_finish(self, items: Sequence[Finish], worker: str) -> list[Finished | DetentError]:
        return [self._finish(item, worker) for item in items]

    def _finish(self, item: Finish, worker: str) -> Finished | DetentError:
        ended = self.execution.get((item.job_id, item.attempt))
        if ended is not None and ended.outcome == "done":
            return Finished(item.job_id, item.attempt)
        job = self.job.get(item.job_id)
        committed = job is not None and self.committed_by(job, item.attempt)
        if not committed and (lost := self.lost(item.job_id, item.attempt)):
            return lost
        self.succeed(self.job[item.job_id], worker, item.result, item.begun_after)
        return Finished(item.job_id, item.attempt)

    def job_abort(self, items: Sequence[Abort], worker: str) -> list[Aborted | DetentError]:
        return [self._abort(item, worker) for item in items]

    def _abort(self, item: Abort, worker: str) -> Aborted | DetentError:
        if item.outcome in ("done", "expired", "parked"):
            return InvalidInput(
                "outcome", item.outcome, "how an attempt failed; done, expired and parked are the engine's"
            )
        ended = self.execution.get((item.job_id, item.attempt))
        if ended is not None and ended.outcome == item.outcome:
            return Aborted(item.job_id, item.attempt, item.outcome, ended.next_state)
        job = self.job.get(item.job_id)
        if job is not None and self.committed_by(job, item.attempt):
            return AlreadyCommitted(job.id, job.attempt)
        if lost := self.lost(item.job_id, item.attempt):
            return lost
        answer = self.end(self.job[item.job_id], item, worker)
        if item.outcome == "throttled":
            self.throttled(self.job[item.job_id], item.delay)
        return answer

    # -- anyone's verbs ----------------------------------------------------------------------------------------

    def job_cancel(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Cancelled | DetentError]:
        return [self._cancel(job_id, actor, reason) for job_id in ids]

    def _cancel(self, job_id: int, actor: str, reason: str | None) -> Cancelled | DetentError:
        job = self.job.get(job_id)
        if job is None:
            return NotFound("job", str(job_id))
        if job.committed_at is not None:
            return AlreadyCommitted(job_id, job.attempt)
        match job.state:
            case "pending":
                self.put_away(job, "cancelled", "cancel", actor, reason)
            case "running" if job.cancel_requested_at is None:
                now = self.log(job, "running", "request_cancel", actor, reason)
                self.job[job_id] = job._replace(
                    cancel_requested_at=now, cancel_requested_by=actor, cancel_reason=reason
                )
            case "failed" | "quarantined":
                return undeclared(job, "cancelled")
        return Cancelled(job_id, self.job[job_id].state)

    def job_retry(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        return [self._move(job_id, "pending", "retry", actor, reason) for job_id in ids]

    def job_discard(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        return [self._move(job_id, "cancelled", "discard", actor, reason) for job_id in ids]

    def job_force(self, job_id: int, to_state: str, actor: str, reason: str) -> Moved | DetentError:
        return self._move(job_id, to_state, "force", actor, reason)

    def _move(self, job_id: int, to_state: str, trigger: str, actor: str, reason: str | None) -> Moved | DetentError:
        job = self.job.get(job_id)
        if job is None:
            return NotFound("job", str(job_id))
        if job.state == to_state:
            return Moved(str(job_id), to_state, False)
        if trigger not in (transition.trigger for transition in JOB.between(job.state, to_state)):
            return undeclared(job, to_state)
        if to_state == "pending":
            self._retry(job, trigger, actor, reason)
        else:
            self.put_away(job, to_state, trigger, actor, reason)
        return Moved(str(job_id), to_state, True)

    def effect_settle(
        self, job_id: int, done: bool, actor: str, reason: str, result: str | None = None
    ) -> Moved | DetentError:
        job = self.job.get(job_id)
        if job is not None and job.state == "quarantined" and self.dead[job_id].reason != "unknown":
            return NotUnknown(job_id, self.dead[job_id].reason)
        answer = self._move(job_id, "succeeded" if done else "pending", "settle", actor, reason)
        if done and isinstance(answer, Moved) and answer.changed:
            self.job[job_id] = self.job[job_id]._replace(result=result, error=None)
        return answer

    def _retry(self, job: Job, trigger: str, actor: str, reason: str | None) -> None:
        now = self.log(job, "pending", trigger, actor, reason)
        self.dead.pop(job.id, None)
        job = job._replace(
            state="pending",
            spared=job.attempt,
            due_at=max(now, job.due_at) if trigger == "retry" else now,
            expires_at=job.expires_at if job.expires_at is not None and job.expires_at > now else None,
            result=None,
            error=None,
            finished_at=None,
            cancel_requested_at=None,
            cancel_requested_by=None,
            cancel_reason=None,
        )
        self.job[job.id] = job
        self.enter_queue(job, holds_key=False)

    # -- the services' verbs -----------------------------------------------------------------------------------

    def job_promote(self, limit: int) -> int:
        due = sorted((row.due_at, row.job_id) for row in self.waiting.values() if row.due_at <= self.clock)
        for _, job_id in due[:limit]:
            row = self.waiting.pop(job_id)
            self.ready[job_id] = Ready(row.lane, row.due_at, job_id, row.holds_key, row.expires_at)
        return len(due[:limit])

    def job_expire(self, limit: int) -> list[int]:
        late = sorted(
            (job.expires_at, job.id)
            for job in self.job.values()
            if job.state == "pending" and job.expires_at is not None and job.expires_at <= self.clock
        )
        for _, job_id in late[:limit]:
            self.put_away(self.job[job_id], "cancelled", "expire", "system", None)
        return [job_id for _, job_id in late[:limit]]

    def lease_reap(self, limit: int, grace: float | None = None) -> Reaped:
        start, end = self.unwatched(grace)
        late = (row for row in self.lease.values() if row.expires_at <= self.clock)
        expired = sorted((row.expires_at, row.id) for row in late if not start < row.expires_at <= end)
        aborted: list[int] = []
        recovered: list[int] = []
        for _, lease_id in expired[:limit]:
            for job in self.held_by(lease_id):
                self._reap(job, self.lease[lease_id].worker, aborted, recovered)
            del self.lease[lease_id]
        return Reaped(len(expired[:limit]), tuple(aborted), tuple(recovered))

    def _reap(self, job: Job, worker: str, aborted: list[int], recovered: list[int]) -> None:
        if job.committed_at is not None:
            self.succeed(job, worker, None)
            recovered.append(job.id)
        else:
            self.end(job, Abort(job_id=job.id, attempt=job.attempt, outcome="expired"), worker)
            aborted.append(job.id)

    def job_recover(self, ids: Sequence[int]) -> list[Finished | DetentError]:
        answers: list[Finished | DetentError] = []
        for job_id in ids:
            job = self.job.get(job_id)
            if job is None:
                answers.append(NotFound("job", str(job_id)))
            elif job.committed_at is None:
                answers.append(LeaseLost(job_id, job.attempt, f"the job is {job.state}"))
            else:
                if job.state == "running":
                    lease = self.lease.get(job.lease_id or 0)
                    self.succeed(job, lease.worker if lease else "", None)
                answers.append(Finished(job_id, job.attempt))
        return answers

    def job_prune(self, before: datetime, after: JobPlace | None, limit: int, actor: str) -> JobsPruned:
        horizon = to_micros(before, field="before")
        if all(row.before < horizon for row in self.horizon):
            self.horizon.append(Horizon(horizon, actor, self.clock))
        looked, then = self.created_before(horizon, after, limit)
        old = self.past(looked, horizon)
        self.go(old)
        return JobsPruned(len(old), then)

    def job_drop(self, ids: Sequence[int], before: datetime, actor: str) -> int:
        horizon = to_micros(before, field="before")
        if ids and all(row.before < horizon for row in self.horizon):
            self.horizon.append(Horizon(horizon, actor, self.clock))
        old = self.past(ids, horizon)
        self.go(old)
        return len(old)

    def past(self, ids: Sequence[int], horizon: int) -> set[int]:
        jobs = [self.job[job_id] for job_id in ids if job_id in self.job]
        return {job.id for job in jobs if job.finished_at is not None and job.finished_at < horizon}

    def go(self, old: set[int]) -> None:
        for job_id in old:
            self.free_slots(self.job.pop(job_id))
            self.dead.pop(job_id, None)
        self.failure_report = {place: row for place, row in self.failure_report.items() if row.job_id not in old}
        self.execution = {place: row for place, row in self.execution.items() if row.job_id not in old}
        self.workflow = {place: row for place, row in self.workflow.items() if place not in old}
        self.workflow_step = {place: row for place, row in self.workflow_step.items() if row.job_id not in old}
        self.event = {place: row for place, row in self.event.items() if row.job_id not in old}
        self.transition_log = [row for row in self.transition_log if row.job_id not in old]

    def queue_pause(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        if self.is_paused(queue):
            return Moved(queue, "paused", False)
        self.queue[queue] = Queue(queue, self.clock, actor, reason)
        self.log_of("queue", queue, "open", "paused", "pause", actor, reason)
        return Moved(queue, "paused", True)

    def queue_resume(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        if not self.is_paused(queue):
            return Moved(queue, "open", False)
        self.queue[queue] = Queue(queue, None, None, None)
        self.log_of("queue", queue, "paused", "open", "resume", actor, reason)
        return Moved(queue, "open", True)
