"""Retention of jobs, results and keys on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.model.clock import from_micros, to_micros
from detent.model.records import JobPlace, JobsPruned, Prunable, ResultsDropped
from detent.model.service_records import KeysForgotten
from detent.store.jobs.sqlite_counts import SqliteCounts
from detent.store.jobs.sqlite_fold import SqliteFold
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import ids_json, micros

__all__ = ["HORIZON", "SqliteRetention"]

HORIZON = """
INSERT INTO detent_horizon (before, actor, at)
SELECT :before, :actor, :now WHERE :before > coalesce((SELECT max(before) FROM detent_horizon), :before - 1)
"""
# The job of a run is deleted with the run, not before, and the nodes of a graph after it. A job that finished before it
# was created is damaged: when it finished is not known.
# A child stays while its parent may ask for it: the parent has not come to rest for good, and the child is in a group
# of its current generation. After a rewind the steps of that generation may be copies, which read groups of earlier
# ones.
_IS_NEEDED = """EXISTS (
                  SELECT 1 FROM detent_job p LEFT JOIN detent_workflow w ON w.job_id = p.id
                   WHERE p.id = j.parent_id AND p.state IN ('pending', 'running', 'quarantined')
                     AND EXISTS (
                       SELECT 1 FROM detent_child_group g
                        WHERE g.parent_id = j.parent_id AND j.id < g.first_id + g.total
                          AND g.first_id = (SELECT max(x.first_id) FROM detent_child_group x
                                             WHERE x.parent_id = j.parent_id AND x.first_id <= j.id)
                          AND (w.job_id IS NULL OR g.generation = w.generation OR w.seeds IS NOT NULL)))"""
# A job stays while another undoes its steps, and that one as long as the first.
_IS_UNDONE = """EXISTS (
                  SELECT 1 FROM detent_workflow w
                   WHERE w.job_id = j.id AND (w.undone_by IS NOT NULL OR w.undo_of IS NOT NULL)
                     AND EXISTS (SELECT 1 FROM detent_job u
                                  WHERE u.id = w.undo_of OR (u.id = w.undone_by
                                    AND u.state IN ('pending', 'running', 'quarantined'))))"""
_MAY_GO = f"""
       coalesce(j.finished_at < :before AND j.finished_at >= j.created_at
                AND NOT EXISTS (SELECT 1 FROM detent_batch_run b WHERE b.id = j.run_id)
                AND NOT {_IS_NEEDED}
                AND NOT EXISTS (SELECT 1 FROM detent_graph g WHERE g.job_id = j.parent_id)
                AND NOT {_IS_UNDONE}, 0)
"""
# Jobs that were created before a time, in the order of their creation. A job in two spans counts once.
_CREATED_BEFORE = """
SELECT j.id, j.created_at, {columns}
  FROM detent_job_span s
 CROSS JOIN detent_job j ON j.id BETWEEN s.first_id AND s.last_id AND +j.created_at = s.created_at
 WHERE (s.created_at, s.block) >= (:after_at, :after_id >> 10) AND s.created_at < :before
   AND (j.created_at, j.id) > (:after_at, :after_id)
   AND NOT EXISTS (SELECT 1 FROM detent_job_span o
                    WHERE o.created_at = s.created_at AND o.block = s.block
                      AND o.first_id > s.first_id AND o.first_id <= j.id AND o.last_id >= j.id)
 ORDER BY s.created_at, s.block, j.id LIMIT :limit
"""
_LOOK = _CREATED_BEFORE.format(columns=f"{_MAY_GO}, j.state")
_OLD_OF = f"""
SELECT id FROM detent_job j
 WHERE id IN (SELECT value FROM json_each(?)) AND finished_at < ? AND finished_at >= created_at
   AND NOT EXISTS (SELECT 1 FROM detent_batch_run b WHERE b.id = j.run_id)
   AND NOT {_IS_NEEDED}
   AND NOT EXISTS (SELECT 1 FROM detent_graph g WHERE g.job_id = j.parent_id)
   AND NOT {_IS_UNDONE}
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
            *(("workflow_wait", "job_id"), ("workflow_signal", "job_id"), ("workflow_unread", "job_id")),
            *(("wake_request", "job_id"), ("tree_cancel", "job_id")),
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
_LOG_DROP = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
VALUES ('database', 'retention', 'kept', 'deleted', 'drop', ?, ?, json_object('jobs', ?), ?)
"""
_LOOK_RESULTS = _CREATED_BEFORE.format(
    columns="""
       coalesce(j.state = 'succeeded' AND j.result IS NOT NULL AND j.finished_at + 1000000 * (
         SELECT t.result_ttl FROM detent_task_times t WHERE t.task = j.task) <= :now, 0)"""
)
_SHORTEST_TTL = "SELECT min(result_ttl) FROM detent_task_times"
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
_BEFORE_ALL = -(1 << 63)


class SqliteRetention(SqliteCounts, SqliteFold):
    """The verbs that delete."""

    def job_prune(
        self, before: datetime, after: JobPlace | None, limit: int, actor: str, states: Sequence[str] | None = None
    ) -> JobsPruned:
        """Record the horizon first: the guards let only older jobs go."""
        horizon = to_micros(before, field="before")
        self._db.change(HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        looked = self._db.rows(_LOOK, _portion(horizon, after, limit))
        old = _old(looked, states)
        self._go(old)
        return JobsPruned(len(old), _next(looked, limit))

    def job_prunable(
        self, before: datetime, after: JobPlace | None, limit: int, states: Sequence[str] | None = None
    ) -> Prunable:
        looked = self._db.rows(_LOOK, _portion(to_micros(before, field="before"), after, limit))
        return Prunable(tuple(sorted(_old(looked, states))), _next(looked, limit))

    def job_drop(self, ids: Sequence[int], before: datetime, actor: str, reason: str | None = None) -> int:
        if not ids:
            return 0
        horizon = to_micros(before, field="before")
        self._db.change(HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        old = [row[0] for row in self._db.rows(_OLD_OF, (ids_json(ids), horizon))]
        self._go(old)
        if old and reason is not None:
            self._db.change(_LOG_DROP, (actor, reason, len(old), self._now()))
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

    def result_drop(self, after: JobPlace | None, limit: int) -> ResultsDropped:
        now = self._now()
        ((shortest,),) = self._db.rows(_SHORTEST_TTL)
        if shortest is None:
            return ResultsDropped(0, None)
        looked = self._db.rows(_LOOK_RESULTS, _portion(now - micros(shortest) + 1, after, limit) | {"now": now})
        over = [job_id for job_id, _, is_over in looked if is_over]
        if over:
            self._db.change(_DROP, (now, ids_json(over)))
        return ResultsDropped(len(over), _next(looked, limit))

    def key_expire(self, limit: int) -> int:
        return self._db.change(_EXPIRED, (self._now(), limit))

    def key_forget(self, after: tuple[str, str], limit: int) -> KeysForgotten:
        looked = self._db.rows(_KEYS, (*after, limit))
        gone = [(tenant, key) for tenant, key, goes in looked if goes]
        self._db.change_many(_KEY_GOES, gone)
        return KeysForgotten(len(gone), (looked[-1][0], looked[-1][1]) if looked and len(looked) == limit else None)


def _portion(before: int, after: JobPlace | None, limit: int) -> dict[str, int]:
    at, job_id = (_BEFORE_ALL, 0) if after is None else (to_micros(after.created_at, field="after"), after.id)
    return {"before": before, "after_at": at, "after_id": job_id, "limit": limit}


def _next(looked: Sequence[Row], limit: int) -> JobPlace | None:
    return JobPlace(from_micros(looked[-1][1]), looked[-1][0]) if looked and len(looked) == limit else None


def _old(looked: Sequence[Row], states: Sequence[str] | None) -> list[int]:
    return [job_id for job_id, _, is_old, state in looked if is_old and (states is None or state in states)]
