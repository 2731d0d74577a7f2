"""Retention of jobs, results and keys on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.model.clock import to_micros
from detent.model.records import Prunable, Pruned, ResultsDropped
from detent.model.service_records import KeysForgotten
from detent.store.jobs.sqlite_counts import SqliteCounts
from detent.store.jobs.sqlite_fold import SqliteFold
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import ids_json

__all__ = ["HORIZON", "SqliteRetention"]

HORIZON = """
INSERT INTO detent_horizon (before, actor, at)
SELECT :before, :actor, :now WHERE :before > coalesce((SELECT max(before) FROM detent_horizon), :before - 1)
"""
# The job of a run is deleted with the run, not before, and no child before its parent has come to rest for good. The
# nodes of a graph go after it. A job that finished before it was created is damaged: when it finished is not known.
_LOOK = """
SELECT id, coalesce(finished_at < ? AND finished_at >= created_at
                    AND NOT EXISTS (SELECT 1 FROM detent_batch_run b WHERE b.id = j.run_id)
                    AND NOT EXISTS (SELECT 1 FROM detent_job p
                                     WHERE p.id = j.parent_id AND p.state IN ('pending', 'running', 'quarantined'))
                    AND NOT EXISTS (SELECT 1 FROM detent_graph g WHERE g.job_id = j.parent_id), 0),
       state
  FROM detent_job j WHERE id > ? ORDER BY id LIMIT ?
"""
_OLD_OF = """
SELECT id FROM detent_job j
 WHERE id IN (SELECT value FROM json_each(?)) AND finished_at < ? AND finished_at >= created_at
   AND NOT EXISTS (SELECT 1 FROM detent_batch_run b WHERE b.id = j.run_id)
   AND NOT EXISTS (SELECT 1 FROM detent_job p
                    WHERE p.id = j.parent_id AND p.state IN ('pending', 'running', 'quarantined'))
   AND NOT EXISTS (SELECT 1 FROM detent_graph g WHERE g.job_id = j.parent_id)
"""
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
    "DELETE FROM detent_failure_report WHERE job_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_ops_run WHERE job_id IN (SELECT value FROM json_each(?))",
    """
    DELETE FROM detent_job_after WHERE job_id IN (
      SELECT n.job_id FROM json_each(?) u JOIN detent_graph_node n ON n.graph_id = u.value)
    """,
    *(
        f"DELETE FROM detent_{table} WHERE {column} IN (SELECT value FROM json_each(?))"
        for table, column in (
            *(("workflow", "job_id"), ("workflow_step", "job_id"), ("workflow_step_begun", "job_id")),
            *(("workflow_wait", "job_id"), ("workflow_signal", "job_id"), ("wake_request", "job_id")),
            *(("child_group", "parent_id"), ("graph_node", "graph_id"), ("graph", "job_id")),
        )
    ),
)
_SPANS = "SELECT DISTINCT created_at, id >> 10 FROM detent_job WHERE id IN (SELECT value FROM json_each(?))"
_EMPTY_SPAN = """
DELETE FROM detent_job_span
 WHERE created_at = ? AND block = ? AND NOT EXISTS (
   SELECT 1 FROM detent_job j
    WHERE j.id BETWEEN detent_job_span.first_id AND detent_job_span.last_id
      AND +j.created_at = detent_job_span.created_at)
"""
_LOOK_RESULTS = """
SELECT j.id, coalesce(j.state = 'succeeded' AND j.result IS NOT NULL
                      AND j.finished_at + s.result_ttl * 1000000 <= :now, 0)
  FROM detent_job j LEFT JOIN detent_task_times s ON s.task = j.task WHERE j.id > :after ORDER BY j.id LIMIT :limit
"""
_DROP = """
UPDATE detent_job SET result = NULL, result_dropped_at = ? WHERE id IN (SELECT value FROM json_each(?))
"""
_EXPIRED = """
DELETE FROM detent_job_key
 WHERE (tenant, key) IN (SELECT tenant, key FROM detent_job_key
                          WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)
"""
_KEYS = """
SELECT k.tenant, k.key, k.expires_at IS NULL AND NOT k.until_claim
                        AND NOT EXISTS (SELECT 1 FROM detent_job j WHERE j.id = k.job_id)
  FROM detent_job_key k WHERE (k.tenant, k.key) > (?, ?) ORDER BY k.tenant, k.key LIMIT ?
"""
_KEY_GOES = "DELETE FROM detent_job_key WHERE tenant = ? AND key = ?"


class SqliteRetention(SqliteCounts, SqliteFold):
    """The verbs that delete."""

    def job_prune(
        self, before: datetime, after_id: int, limit: int, actor: str, states: Sequence[str] | None = None
    ) -> Pruned:
        """Record the horizon first: the guards let only older jobs go."""
        horizon = to_micros(before, field="before")
        self._db.change(HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        looked = self._db.rows(_LOOK, (horizon, after_id, limit))
        old = _old(looked, states)
        self._go(old)
        return Pruned(len(old), looked[-1][0] if looked and len(looked) == limit else None)

    def job_prunable(
        self, before: datetime, after_id: int, limit: int, states: Sequence[str] | None = None
    ) -> Prunable:
        looked = self._db.rows(_LOOK, (to_micros(before, field="before"), after_id, limit))
        return Prunable(tuple(_old(looked, states)), looked[-1][0] if looked and len(looked) == limit else None)

    def job_drop(self, ids: Sequence[int], before: datetime, actor: str) -> int:
        if not ids:
            return 0
        horizon = to_micros(before, field="before")
        self._db.change(HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        old = [row[0] for row in self._db.rows(_OLD_OF, (ids_json(ids), horizon))]
        self._go(old)
        return len(old)

    def _go(self, ids: list[int]) -> None:
        # Jobs that have succeeded and are not counted yet are counted before they are deleted.
        while ids and self.counts_fold(100):
            pass
        if not ids:
            return
        spans = self._db.rows(_SPANS, (ids_json(ids),))
        for statement in _GO:
            self._db.change(statement, (ids_json(ids),))
        self._db.change_many(_EMPTY_SPAN, spans)

    def result_drop(self, after_id: int, limit: int) -> ResultsDropped:
        now = self._now()
        looked = self._db.rows(_LOOK_RESULTS, {"now": now, "after": after_id, "limit": limit})
        over = [job_id for job_id, is_over in looked if is_over]
        if over:
            self._db.change(_DROP, (now, ids_json(over)))
        return ResultsDropped(len(over), looked[-1][0] if looked and len(looked) == limit else None)

    def key_expire(self, limit: int) -> int:
        return self._db.change(_EXPIRED, (self._now(), limit))

    def key_forget(self, after: tuple[str, str], limit: int) -> KeysForgotten:
        looked = self._db.rows(_KEYS, (*after, limit))
        gone = [(tenant, key) for tenant, key, goes in looked if goes]
        self._db.change_many(_KEY_GOES, gone)
        return KeysForgotten(len(gone), (looked[-1][0], looked[-1][1]) if looked and len(looked) == limit else None)


def _old(looked: Sequence[Row], states: Sequence[str] | None) -> list[int]:
    return [job_id for job_id, is_old, state in looked if is_old and (states is None or state in states)]
