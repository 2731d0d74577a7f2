"""Explicit moves of jobs on SQLite, each with its line in the log before it, and pausing queues."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice

from detent.errors import BeingUndone, DetentError, NotFound, NotUnknown, PartOfRun, RunBusy
from detent.lifecycle.library import JOB
from detent.model.clock import from_micros
from detent.model.graph_records import GRAPH_TASK
from detent.model.ops_records import OPS_TASK
from detent.model.pipeline_records import CARRYING_TASKS
from detent.model.records import Moved
from detent.model.service_records import QueueRow
from detent.store.jobs.move_rules import moved_to, undeclared
from detent.store.jobs.sqlite_cancels import NODES, SqliteCancels, in_id_order
from detent.store.sqlite.verb_base import Job

__all__ = ["SqliteMoves"]

_BACK = """
UPDATE detent_job
   SET state = 'pending', spared = attempt, due_at = :due, finished_at = NULL, error = NULL, result = NULL,
       expires_at = CASE WHEN expires_at > :now THEN expires_at END, cancel_requested_at = NULL,
       cancel_requested_by = NULL, cancel_reason = NULL, cancel_undo = NULL
 WHERE id = :id AND attempt = :attempt AND state = :from
"""
_WAS_PARKED = "SELECT 1 FROM detent_workflow WHERE job_id = ? AND parked_attempt = ?"
_ROLLING_BACK = """
SELECT b.id FROM detent_target g JOIN detent_batch_run b ON b.id = g.run_id
 WHERE g.apply_job_id = ? AND b.rollback_requested_at IS NOT NULL
"""
_UNDONE_BY = """
SELECT u.id FROM detent_workflow w JOIN detent_job u ON u.id = w.undone_by
 WHERE w.job_id = ? AND u.state <> 'succeeded'
"""
_RUN_OF = "SELECT run_id FROM detent_job WHERE id = ?"
_NOT_DEAD = "DELETE FROM detent_dead WHERE job_id = ?"
# One query per table, so that its index finds the first rows without reading the others.
_LATE = tuple(
    f"SELECT expires_at, job_id FROM {table} WHERE expires_at IS NOT NULL AND expires_at <= ?"
    " ORDER BY expires_at, job_id LIMIT ?"
    for table in ("detent_ready", "detent_waiting")
)

_LOG_MOVE = """
INSERT INTO detent_transition_log (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor,
  reason, metadata, correlation_id, at)
VALUES (?, 'job', ?, ?, ?, 'pending', 'pending', 'move', ?, ?, ?, ?, ?)
"""
_READY_MOVES = "UPDATE detent_ready SET lane_id = ? WHERE lane_id = ? AND ready_at = ? AND job_id = ?"
_WAITING_MOVES = "UPDATE detent_waiting SET lane_id = ?, priority = ? WHERE job_id = ?"
_JOB_MOVES = "UPDATE detent_job SET queue = ?, priority = ? WHERE id = ? AND state = 'pending'"

_GRAPH_LOOKS = "UPDATE detent_graph SET failed = failed WHERE job_id = ?"

_WHY_DEAD = "SELECT reason FROM detent_dead WHERE job_id = ?"
_DONE = """
UPDATE detent_job SET state = 'succeeded', finished_at = :now, committed_at = :now, result = :result, error = NULL
 WHERE id = :id AND attempt = :attempt AND state = 'quarantined'
"""
_PAUSED = "SELECT 1 FROM detent_queue WHERE name = ? AND paused_at IS NOT NULL"
_QUEUES = "SELECT name, paused_at, paused_by, reason FROM detent_queue ORDER BY name"
_SET_QUEUE = """
INSERT INTO detent_queue (name, paused_at, paused_by, reason) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE
  SET paused_at = excluded.paused_at, paused_by = excluded.paused_by, reason = excluded.reason
"""
_LOG_QUEUE = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('queue', ?, ?, ?, ?, ?, ?, ?)
"""


class SqliteMoves(SqliteCancels):
    """Explicit moves, expiry, and queues."""

    def _retry_nodes(self, graph_id: int, actor: str, reason: str | None, now: int) -> None:
        for node_id, state in self._db.rows(NODES, (graph_id,)):
            if state in ("failed", "cancelled", "quarantined"):
                self._move(node_id, "pending", "retry", actor, reason, now)
        # If there was none, the graph ends at once.
        self._db.change(_GRAPH_LOOKS, (graph_id,))

    def job_retry(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        now = self._now()
        return in_id_order(ids, lambda job_id: self._move(job_id, "pending", "retry", actor, reason, now))

    def job_discard(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        now = self._now()
        return in_id_order(ids, lambda job_id: self._move(job_id, "cancelled", "discard", actor, reason, now))

    def job_force(self, job_id: int, to_state: str, actor: str, reason: str) -> Moved | DetentError:
        return self._move(job_id, to_state, "force", actor, reason, self._now())

    def effect_settle(
        self, job_id: int, done: bool, actor: str, reason: str, result: str | None = None
    ) -> Moved | DetentError:
        job = self._jobs([job_id]).get(job_id)
        to_state = "succeeded" if done else "pending"
        if job is None:
            return NotFound("job", str(job_id))
        if job.state == to_state:
            return Moved(str(job_id), to_state, False)
        if job.state != "quarantined":
            return undeclared(job.id, job.state, to_state, job.run_state)
        why = next((row[0] for row in self._db.rows(_WHY_DEAD, (job_id,))), None)
        if why != "unknown":
            return NotUnknown(job_id, why)
        now = self._now()
        if not done:
            self._bring_back(job, "settle", actor, reason, now)
            return Moved(str(job_id), to_state, True)
        at = self._log(job, to_state, "settle", actor, reason, now)
        moved = self._db.change(_DONE, {"id": job.id, "attempt": job.attempt, "now": at, "result": result})
        self._expect(moved, 1, [job.id], job.state)
        self._db.change(_NOT_DEAD, (job.id,))
        return Moved(str(job_id), to_state, True)

    def job_move(
        self, ids: Sequence[int], queue: str | None, priority: int | None, actor: str, reason: str | None = None
    ) -> list[Moved | DetentError]:
        now = self._now()
        return in_id_order(ids, lambda job_id: self._move_job(job_id, queue, priority, actor, reason, now))

    def _move_job(
        self, job_id: int, queue: str | None, priority: int | None, actor: str, reason: str | None, now: int
    ) -> Moved | DetentError:
        job = self._jobs([job_id]).get(job_id)
        if job is None:
            return NotFound("job", str(job_id))
        if job.state != "pending":
            return undeclared(job.id, job.state, "pending", job.run_state)
        to = job._replace(
            queue=job.queue if queue is None else queue, priority=job.priority if priority is None else priority
        )
        if to == job:
            return Moved(str(job_id), "pending", False)
        self._relane(job, to)
        about = (actor, reason, moved_to(queue, priority), job.correlation_id, max(now, job.last_at))
        self._db.change(_LOG_MOVE, (job.tenant, str(job.id), job.id, job.attempt, *about))
        return Moved(str(job_id), "pending", True)

    def _relane(self, job: Job, to: Job) -> None:
        lane = self._lane(self._lane_of(to))
        if not self._db.change(_WAITING_MOVES, (lane, to.priority, job.id)):
            moved = self._db.change(_READY_MOVES, (lane, self._lane(self._lane_of(job)), job.due_at, job.id))
            self._in_place(job, moved)
        self._expect(self._db.change(_JOB_MOVES, (to.queue, to.priority, job.id)), 1, [job.id], "pending")

    def job_expire(self, limit: int) -> list[int]:
        now = self._now()
        found = merge(*(self._db.rows(statement, (now, limit)) for statement in _LATE))
        late = [job_id for _, job_id in islice(found, limit)]
        jobs = self._jobs(late)
        for job_id in late:
            self._put_away(jobs[job_id], "cancelled", "expire", "system", None, now)
        return late

    def _move(
        self, job_id: int, to_state: str, trigger: str, actor: str, reason: str | None, now: int
    ) -> Moved | DetentError:
        job = self._jobs([job_id]).get(job_id)
        if job is None:
            return NotFound("job", str(job_id))
        if job.state == to_state:
            return Moved(str(job_id), to_state, False)
        if job.task == OPS_TASK:
            return undeclared(job.id, job.state, to_state, job.run_state)
        if trigger not in (transition.trigger for transition in JOB.between(job.state, to_state)):
            return undeclared(job.id, job.state, to_state, job.run_state)
        if trigger == "retry" and (rolling := self._db.rows(_ROLLING_BACK, (job_id,))):
            return RunBusy(rolling[0][0], f"a retry of job {job_id}", "a rollback was asked for")
        if trigger == "retry" and job.task.startswith(CARRYING_TASKS) and (run_id := self._run_of(job_id)):
            return PartOfRun(job_id, run_id)
        if trigger == "retry" and (undo := self._db.rows(_UNDONE_BY, (job_id,))):
            return BeingUndone(job_id, undo[0][0])
        if to_state == "pending":
            self._bring_back(job, trigger, actor, reason, now)
            if job.task == GRAPH_TASK:
                self._retry_nodes(job_id, actor, reason, now)
        else:
            self._put_away(job, to_state, trigger, actor, reason, now)
        return Moved(str(job_id), to_state, True)

    def _run_of(self, job_id: int) -> int | None:
        (found,) = self._db.rows(_RUN_OF, (job_id,))
        return None if found[0] is None else int(found[0])

    def _bring_back(
        self, job: Job, trigger: str, actor: str, reason: str | None, now: int, metadata: str | None = None
    ) -> None:
        at = self._log(job, "pending", trigger, actor, reason, now, metadata)
        # A job that was cancelled before it was due keeps its due time. A workflow that was parked looks again what has
        # arrived, since nothing wakes it while it rests.
        keeps = trigger == "retry" and job.due_at > at and not self._db.rows(_WAS_PARKED, (job.id, job.attempt))
        due = job.due_at if keeps else at
        back = {"id": job.id, "attempt": job.attempt, "from": job.state, "now": at, "due": due}
        moved = self._db.change(_BACK, back)
        self._expect(moved, 1, [job.id], job.state)
        self._db.change(_NOT_DEAD, (job.id,))
        late = job.expires_at is not None and job.expires_at <= at
        self._enter_queue([(self._lane_of(job), due, job.id, 0, None if late else job.expires_at)], at)

    def queue_pause(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        if self._db.rows(_PAUSED, (queue,)):
            return Moved(queue, "paused", False)
        now = self._now()
        self._db.change(_LOG_QUEUE, (queue, "open", "paused", "pause", actor, reason, now))
        self._db.change(_SET_QUEUE, (queue, now, actor, reason))
        return Moved(queue, "paused", True)

    def queue_resume(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        if not self._db.rows(_PAUSED, (queue,)):
            return Moved(queue, "open", False)
        self._db.change(_LOG_QUEUE, (queue, "paused", "open", "resume", actor, reason, self._now()))
        self._db.change(_SET_QUEUE, (queue, None, None, None))
        return Moved(queue, "open", True)

    def queue_list(self) -> list[QueueRow]:
        return [
            QueueRow(name=name, paused_at=None if at is None else from_micros(at), paused_by=by, reason=reason)
            for name, at, by, reason in self._db.rows(_QUEUES)
        ]
