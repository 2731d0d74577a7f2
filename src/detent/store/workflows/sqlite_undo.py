"""Undoing steps on SQLite, and settling them."""

from __future__ import annotations

import json

from detent.errors import DetentError, NotFound
from detent.model.records import Moved
from detent.model.workflow_records import NewUndo, UndoBegun, UndoStarted
from detent.store.jobs.sqlite_moves import SqliteMoves
from detent.store.sqlite.verb_base import Job
from detent.store.workflows.rules import scope_of, settled, undo_refused
from detent.store.workflows.sqlite_steps import SqliteSteps

__all__ = ["SqliteUndo"]

_UNDO = """
UPDATE detent_workflow
   SET undoing_since = coalesce(undoing_since, :at), undo_cause = coalesce(undo_cause, :cause)
 WHERE job_id = :job_id RETURNING undo_cause
"""
_UNDO_WAIVED = "SELECT 1 FROM detent_job WHERE id = ? AND cancel_requested_at IS NOT NULL AND cancel_undo IS 0"
_WORKFLOW = """
SELECT w.version, w.generation, w.undoing_since, w.undo_of, w.undone_by,
       j.state = 'pending' AND j.ended = w.parked_attempt
         AND EXISTS (SELECT 1 FROM detent_waiting q WHERE q.job_id = j.id AND q.limit_key IS NULL),
       EXISTS (SELECT 1 FROM detent_workflow_step s
                WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.path = '~undone')
  FROM detent_workflow w CROSS JOIN detent_job j ON j.id = w.job_id WHERE w.job_id = ?
"""
# In the order in which their undo is called.
_PLAN = """
SELECT s.path FROM detent_workflow w
 CROSS JOIN detent_workflow_step s ON s.job_id = coalesce(w.undo_of, w.job_id) AND s.generation = w.generation
 WHERE w.job_id = ? AND s.undo AND s.value IS NOT NULL AND s.kind <> 'scope' AND NOT EXISTS (
   SELECT 1 FROM detent_workflow_step u
    WHERE u.job_id IN (w.job_id, w.undo_of, w.undone_by) AND u.generation = w.generation
      AND u.path = s.path || '~undo')
 ORDER BY s.seq DESC
"""
_NEW_JOB = """
INSERT INTO detent_job
  (id, tenant, task, queue, priority, due_at, payload, metadata, correlation_id, traceparent, nonce, created_at,
   attempts_max, idempotent, limit_key, cost)
SELECT :id, j.tenant, j.task, j.queue, j.priority, :now, coalesce(w.payload, j.payload), :metadata,
       coalesce(j.correlation_id, CAST(j.id AS TEXT)), j.traceparent, :nonce, :now, j.attempts_max, j.idempotent,
       j.limit_key, j.cost
  FROM detent_job j CROSS JOIN detent_workflow w ON w.job_id = j.id WHERE j.id = :job_id
"""
_NEW_WORKFLOW = """
INSERT INTO detent_workflow (job_id, version, generation, root_id, depth, undoing_since, undo_cause, undo_of)
SELECT :id, version, generation, :id, 0, :now, :cause, job_id FROM detent_workflow WHERE job_id = :job_id
"""
_UNDONE_BY = "UPDATE detent_workflow SET undone_by = :id WHERE job_id = :job_id"
_WHY_DEAD = "SELECT reason FROM detent_dead WHERE job_id = ?"
_UNKNOWN = """
SELECT DISTINCT b.path FROM detent_workflow w
 CROSS JOIN detent_workflow_step_begun b ON b.job_id = w.job_id AND b.generation = w.generation
 WHERE w.job_id = ? AND NOT EXISTS (
   SELECT 1 FROM detent_workflow_step s
    WHERE s.job_id = b.job_id AND s.generation = b.generation AND s.path = b.path)
 ORDER BY b.path LIMIT 100
"""
_SETTLED = """
INSERT INTO detent_workflow_step
  (job_id, generation, path, seq, kind, scope, attempt, beside, secret, undo, began_at, done_at, value)
SELECT w.job_id, w.generation, :record,
       1 + (SELECT coalesce(max(s.seq), 0) FROM detent_workflow_step s
             WHERE s.job_id IN (w.job_id, w.undo_of) AND s.generation = w.generation),
       :kind, :scope, 0, :beside,
       EXISTS (SELECT 1 FROM detent_workflow_step_begun b
                WHERE b.job_id = w.job_id AND b.generation = w.generation AND b.path = :record AND b.secret),
       EXISTS (SELECT 1 FROM detent_workflow_step_begun b
                WHERE b.job_id = w.job_id AND b.generation = w.generation AND b.path = :record AND b.undo),
       :at, :at, :value
  FROM detent_workflow w WHERE w.job_id = :job_id
"""


class SqliteUndo(SqliteSteps, SqliteMoves):
    """`undo_begin`, `undo_start` and `step_settle`."""

    def undo_begin(self, job_id: int, attempt: int, cause: str) -> UndoBegun | DetentError:
        now = self._now()
        holder = self._held([job_id], now).get(job_id)
        if holder is None or holder.attempt != attempt:
            return self._why_not(job_id, attempt, now)
        if self._db.rows(_UNDO_WAIVED, (job_id,)):
            return UndoBegun(job_id, cause, waived=True)
        found = self._db.rows(_UNDO, {"job_id": job_id, "at": holder.at, "cause": cause})
        return UndoBegun(job_id, found[0][0] if found else cause)

    def undo_start(self, item: NewUndo) -> UndoStarted | DetentError:
        job = self._jobs([item.job_id]).get(item.job_id)
        if job is None:
            return undo_refused(item.job_id, "gone", None)
        found = self._db.rows(_WORKFLOW, (item.job_id,))
        if found and found[0][4] is not None:
            return UndoStarted(item.job_id, found[0][4], False)
        if (refused := self._not_undoable(job, found[0] if found else None)) is not None:
            return undo_refused(item.job_id, *refused)
        now = max(self._now(), job.last_at)
        values = {"id": item.id, "job_id": item.job_id, "now": now}
        self._db.change(_NEW_JOB, {**values, "metadata": item.metadata, "nonce": item.nonce})
        self._db.change(_NEW_WORKFLOW, {**values, "cause": item.cause})
        self._date([item.id], now)
        made = self._jobs([item.id])[item.id]
        self._enter_queue([(self._lane_of(made), now, item.id, 0, None)], now)
        self._db.change(_UNDONE_BY, {"id": item.id, "job_id": item.job_id})
        return UndoStarted(item.job_id, item.id, True)

    def _not_undoable(self, job: Job, found: tuple[object, ...] | None) -> tuple[str, str | None] | None:
        """Return why the steps of a job cannot be undone by another one, and what was found."""
        _, _, undoing_since, undo_of, _, is_parked, is_undone = found or (None,) * 7
        if undo_of is not None:
            return "undo", str(undo_of)
        if job.state in ("pending", "running"):
            return "rests", "parked" if is_parked else job.state
        if undoing_since is not None and is_undone:
            return "undone", None
        plan = [str(path) for (path,) in self._db.rows(_PLAN, (job.id,))]
        if undoing_since is not None and job.state == "quarantined":
            return "stopped", plan[0] if plan else None
        if self._why_dead(job.id) == "unknown":
            return "unknown", None
        return None if plan else ("nothing", None)

    def _why_dead(self, job_id: int) -> str | None:
        return next((str(reason) for (reason,) in self._db.rows(_WHY_DEAD, (job_id,))), None)

    def step_settle(
        self, job_id: int, path: str, done: bool, actor: str, reason: str, value: str | None = None
    ) -> Moved | DetentError:
        job = self._jobs([job_id]).get(job_id)
        if job is None:
            return NotFound("job", str(job_id))
        why = self._why_dead(job_id)
        steps: list[str] | None = None
        is_undo = why == "undo failed"
        if job.state == "quarantined" and self._db.rows(_WORKFLOW, (job_id,)):
            found = self._db.rows(_PLAN, (job_id,))[:1] if is_undo else self._db.rows(_UNKNOWN, (job_id,))
            steps = [str(row[0]) for row in found] if found or why == "unknown" else None
        if steps is None or path not in steps:
            return settled(job_id, path, job.state, why, False, steps)
        now = self._now()
        if done:
            record, kind = (f"{path}~undo", "undo") if is_undo else (path, "call")
            values = {
                "job_id": job_id,
                "record": record,
                "kind": kind,
                "scope": scope_of(path),
                "at": max(now, job.last_at),
            }
            self._db.change(_SETTLED, {**values, "beside": int(not is_undo), "value": value or "null"})
        metadata = json.dumps({"step": path, "done": done})
        self._bring_back(job, "settle", actor, reason, now, metadata=metadata)
        return settled(job_id, path, job.state, why, True, steps)
