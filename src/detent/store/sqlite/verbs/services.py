"""What the engine does for itself: promotion, retention, and the doors of queues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.model.clock import from_micros, to_micros
from detent.model.records import Moved, Prunable, Pruned
from detent.model.service_records import QueueRow
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verbs.base import VerbBase, ids_json

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
# The job first: the guards let records go only when their job is gone.
_GO = (
    "DELETE FROM detent_job WHERE id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_execution WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_event WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_transition_log WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_dead WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_untold WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_ops_run WHERE job_id IN (SELECT value FROM json_each(?))",
)
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


class ServiceVerbs(VerbBase):
    """`job_promote`, `job_prune`, `job_prunable`, `job_drop`, `queue_pause`, `queue_resume` and `queue_list`."""

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
        for statement in _GO if ids else ():
            self._db.change(statement, (ids_json(ids),))

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
