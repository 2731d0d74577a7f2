"""What the engine does for itself: promotion, retention, and the doors of queues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.model.clock import from_micros, to_micros
from detent.model.records import Moved, Prunable, Pruned
from detent.model.service_records import QueueRow
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verbs.base import ids_json
from detent.store.sqlite.verbs.figures import FigureVerbs

__all__ = ["HORIZON", "ServiceVerbs"]

_DUE = """
SELECT lane_id, due_at, job_id, holds_key, expires_at FROM detent_waiting
 WHERE limit_key IS NULL AND due_at <= ? ORDER BY due_at, job_id LIMIT ?
"""
_TO_READY = "INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key, expires_at) VALUES (?, ?, ?, ?, ?)"
_NOT_WAITING = "DELETE FROM detent_waiting WHERE job_id IN (SELECT value FROM json_each(?))"
HORIZON = """
INSERT INTO detent_horizon (before, actor, at)
SELECT :before, :actor, :now WHERE :before > coalesce((SELECT max(before) FROM detent_horizon), :before - 1)
"""
# What a run that is there was made by goes with the run, not before it. A job that finished before it was created is
# damaged: when it finished is not known.
_LOOK = """
SELECT id, coalesce(finished_at < ? AND finished_at >= created_at
                    AND NOT EXISTS (SELECT 1 FROM detent_batch_run b WHERE b.id = run_id), 0), state
  FROM detent_job WHERE id > ? ORDER BY id LIMIT ?
"""
_OLD_OF = """
SELECT id FROM detent_job
 WHERE id IN (SELECT value FROM json_each(?)) AND finished_at < ? AND finished_at >= created_at
   AND NOT EXISTS (SELECT 1 FROM detent_batch_run b WHERE b.id = run_id)
"""
_DELTAS_PER_BATCH = 50
"""A batch stands for many jobs, a delta for one."""
_DELTAS = "SELECT n, tenant, queue, task, state, jobs FROM detent_finished_delta ORDER BY n LIMIT ?"
_FOLD = """
INSERT INTO detent_finished_count (tenant, queue, task, state, jobs) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, queue, task, state) DO UPDATE SET jobs = jobs + excluded.jobs
"""
_FOLDED = "DELETE FROM detent_finished_delta WHERE n <= ?"
_BATCHES = "SELECT n FROM detent_succeeded_batch ORDER BY n LIMIT ?"
_FOLD_BATCHES = """
INSERT INTO detent_finished_count (tenant, queue, task, state, jobs)
SELECT j.tenant, j.queue, j.task, j.state, count(*)
  FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
  CROSS JOIN detent_job j ON j.id = u.value AND j.state = 'succeeded'
 WHERE b.n <= ? GROUP BY j.tenant, j.queue, j.task, j.state
ON CONFLICT (tenant, queue, task, state) DO UPDATE SET jobs = jobs + excluded.jobs
"""
_BATCHES_FOLDED = "DELETE FROM detent_succeeded_batch WHERE n <= ?"
# The job first: the guards let records go only when their job is gone.
_GO = (
    """
    DELETE FROM detent_limit_slot WHERE (limit_key, job_id) IN (
      SELECT s.limit_key, s.job_id
        FROM json_each(?) u CROSS JOIN detent_job j ON j.id = u.value
        CROSS JOIN detent_limit_slot s ON s.job_id = j.id AND s.limit_key IN (
          SELECT j.limit_key
          UNION SELECT m.limit_key FROM detent_limit_member m WHERE m.kind = 'task' AND m.name = j.task
          UNION SELECT m.limit_key FROM detent_limit_member m WHERE m.kind = 'queue' AND m.name = j.queue))
    """,
    """
    INSERT INTO detent_finished_delta (tenant, queue, task, state, jobs)
    SELECT tenant, queue, task, state, -count(*) FROM detent_job
     WHERE id IN (SELECT value FROM json_each(?)) AND finished_at IS NOT NULL GROUP BY tenant, queue, task, state
    """,
    "DELETE FROM detent_job WHERE id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_execution WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_event WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_transition_log WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_dead WHERE job_id IN (SELECT value FROM json_each(?))",
    """
    DELETE FROM detent_unsuccessful
     WHERE state IN ('failed', 'cancelled') AND job_id IN (SELECT value FROM json_each(?))
    """,
    "DELETE FROM detent_untold WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_ops_run WHERE job_id IN (SELECT value FROM json_each(?))",
)
_SPANS = "SELECT DISTINCT created_at, id >> 10 FROM detent_job WHERE id IN (SELECT value FROM json_each(?))"
_EMPTY_SPAN = """
DELETE FROM detent_job_span
 WHERE created_at = ? AND block = ? AND NOT EXISTS (
   SELECT 1 FROM detent_job j
    WHERE j.id BETWEEN detent_job_span.first_id AND detent_job_span.last_id
      AND +j.created_at = detent_job_span.created_at)
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


class ServiceVerbs(FigureVerbs):
    """`job_promote`, `job_prune`, `job_prunable`, `job_drop`, `counts_fold`, `queue_pause`, `queue_resume` and
    `queue_list`."""

    def job_promote(self, limit: int) -> int:
        """In the order of their time."""
        due = self._db.rows(_DUE, (self._now(), limit))
        if due:
            self._db.change_many(_TO_READY, due)
            self._db.change(_NOT_WAITING, (ids_json(row[2] for row in due),))
        return len(due)

    def job_prune(
        self, before: datetime, after_id: int, limit: int, actor: str, states: Sequence[str] | None = None
    ) -> Pruned:
        """The horizon first: the guards let nothing go that is not below it."""
        horizon = to_micros(before, field="before")
        self._db.change(HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        looked = self._db.rows(_LOOK, (horizon, after_id, limit))
        old = _old(looked, states)
        self._go(old)
        return Pruned(len(old), looked[-1][0] if looked and len(looked) == limit else None)

    def job_prunable(
        self, before: datetime, after_id: int, limit: int, states: Sequence[str] | None = None
    ) -> Prunable:
        """A walk along the ids."""
        looked = self._db.rows(_LOOK, (to_micros(before, field="before"), after_id, limit))
        return Prunable(tuple(_old(looked, states)), looked[-1][0] if looked and len(looked) == limit else None)

    def job_drop(self, ids: Sequence[int], before: datetime, actor: str) -> int:
        """The horizon first, as for `job_prune`."""
        if not ids:
            return 0
        horizon = to_micros(before, field="before")
        self._db.change(HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        old = [row[0] for row in self._db.rows(_OLD_OF, (ids_json(ids), horizon))]
        self._go(old)
        return len(old)

    def _go(self, ids: list[int]) -> None:
        # Jobs that have succeeded and are not counted yet are counted before they go.
        while ids and self.counts_fold(100):
            pass
        if not ids:
            return
        spans = self._db.rows(_SPANS, (ids_json(ids),))
        for statement in _GO:
            self._db.change(statement, (ids_json(ids),))
        self._db.change_many(_EMPTY_SPAN, spans)

    def counts_fold(self, limit: int) -> int:
        """The oldest changes first."""
        moves = self._add_moves(_DELTAS_PER_BATCH * limit)
        changes = self._db.rows(_DELTAS, (_DELTAS_PER_BATCH * limit,))
        if changes:
            self._db.change_many(_FOLD, [row[1:] for row in changes])
            self._db.change(_FOLDED, (changes[-1][0],))
        batches = self._db.rows(_BATCHES, (limit,))
        if batches:
            self._db.change(_FOLD_BATCHES, batches[-1])
            self._add_succeeded(batches[-1][0])
            self._db.change(_BATCHES_FOLDED, batches[-1])
        return moves + len(changes) + len(batches)

    def queue_pause(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        """Recorded; the one who paused it first stands."""
        if self._db.rows(_PAUSED, (queue,)):
            return Moved(queue, "paused", False)
        now = self._now()
        self._db.change(_LOG_QUEUE, (queue, "open", "paused", "pause", actor, reason, now))
        self._db.change(_SET_QUEUE, (queue, now, actor, reason))
        return Moved(queue, "paused", True)

    def queue_resume(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        """Recorded; an open queue stays as it is."""
        if not self._db.rows(_PAUSED, (queue,)):
            return Moved(queue, "open", False)
        self._db.change(_LOG_QUEUE, (queue, "paused", "open", "resume", actor, reason, self._now()))
        self._db.change(_SET_QUEUE, (queue, None, None, None))
        return Moved(queue, "open", True)

    def queue_list(self) -> list[QueueRow]:
        """By name."""
        return [
            QueueRow(name=name, paused_at=None if at is None else from_micros(at), paused_by=by, reason=reason)
            for name, at, by, reason in self._db.rows(_QUEUES)
        ]


def _old(looked: Sequence[Row], states: Sequence[str] | None) -> list[int]:
    return [job_id for job_id, is_old, state in looked if is_old and (states is None or state in states)]
