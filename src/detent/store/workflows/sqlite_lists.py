"""Looking at workflows on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.model.clock import to_micros
from detent.model.workflow_records import (
    NEVER,
    ChildGroupRow,
    SignalRow,
    StepPage,
    VersionCount,
    WaitPage,
    WaitRow,
    WorkflowPage,
    WorkflowRow,
    WorkflowSearch,
)
from detent.store.sqlite.verb_base import VerbBase, fields_named, ids_json
from detent.store.workflows.rules import GROUPS_MAX
from detent.store.workflows.sqlite_steps import STEP_COLUMNS, step_row

__all__ = ["SqliteWorkflowLists"]

_NEVER = to_micros(NEVER, field="due_at")
_IS_PARKED = """j.state = 'pending' AND j.ended = w.parked_attempt AND EXISTS (
    SELECT 1 FROM detent_waiting q WHERE q.job_id = w.job_id AND q.limit_key IS NULL)"""
_WORKFLOW = WorkflowRow.__struct_fields__
_GET = f"""
SELECT {", ".join(_WORKFLOW)} FROM (
  SELECT w.job_id, w.version, w.generation, w.root_id, j.parent_id, w.depth, w.forked_from, w.parks, w.undoing_since,
         w.undo_cause, w.undo_of, w.undone_by,
         (SELECT min(s.done_at) FROM detent_workflow_step s
           WHERE s.job_id IN (w.job_id, w.undone_by) AND s.generation = w.generation
             AND s.path = '~undone') AS undone_at,
         (SELECT count(*) FROM detent_workflow_step s
           WHERE s.job_id = w.job_id AND s.generation = w.generation) AS steps,
         CASE WHEN {_IS_PARKED} THEN w.parked_at END AS parked_at,
         CASE WHEN {_IS_PARKED} THEN w.parked_for END AS parked_for,
         CASE WHEN j.due_at < {_NEVER} AND {_IS_PARKED} THEN j.due_at END AS due_at
    FROM json_each(?) asked CROSS JOIN detent_workflow w ON w.job_id = asked.value
   CROSS JOIN detent_job j ON j.id = w.job_id)
"""
# The job itself is at n = 0: its own arguments are known.
_ARGUMENTS = """
WITH RECURSIVE chain (job_id, forked_from, payload, n) AS (
  SELECT job_id, forked_from, payload, 0 FROM detent_workflow WHERE job_id = ?
  UNION ALL
  SELECT c.forked_from, w.forked_from, w.payload, c.n + 1
    FROM chain c LEFT JOIN detent_workflow w ON w.job_id = c.forked_from
   WHERE c.forked_from IS NOT NULL AND c.n < 16
)
SELECT payload FROM chain WHERE payload IS NOT NULL
UNION ALL
SELECT j.payload FROM chain c CROSS JOIN detent_job j ON j.id = c.job_id WHERE c.n > 0
"""
_LIST = f"""
SELECT w.job_id, (:task IS NULL OR j.task = :task) AND (:version IS NULL OR w.version = :version)
       AND (:state IS NULL OR j.state = :state) AND (:tenant IS NULL OR j.tenant = :tenant)
       AND (:since IS NULL OR j.created_at >= :since) AND (NOT :parked OR {_IS_PARKED})
  FROM detent_workflow w CROSS JOIN detent_job j ON j.id = w.job_id
 WHERE w.job_id < :before ORDER BY w.job_id DESC LIMIT :limit
"""
_STEPS = f"""
SELECT {STEP_COLUMNS} FROM detent_workflow_step
 WHERE job_id = :job_id AND path > :after AND (:at IS NULL OR done_at <= :at)
   AND generation = coalesce(:generation, (SELECT w.generation FROM detent_workflow w WHERE w.job_id = :job_id))
 ORDER BY path LIMIT :limit
"""
_SIGNAL = SignalRow.__struct_fields__
_SIGNALS = """
SELECT s.job_id, s.name, s.seq, s.payload, s.dedupe, s.actor, s.reason, s.sent_at, t.path, t.done_at
  FROM detent_workflow_signal s
  LEFT JOIN detent_workflow_step t
    ON t.job_id = s.job_id AND t.signal_name = s.name AND t.signal_seq = s.seq AND t.signal_seq IS NOT NULL
   AND t.generation = (
     SELECT min(x.generation) FROM detent_workflow_step x
      WHERE x.job_id = s.job_id AND x.signal_name = s.name AND x.signal_seq = s.seq AND x.signal_seq IS NOT NULL)
 WHERE s.job_id = ? AND s.seq > ? ORDER BY s.seq LIMIT ?
"""
_UNREAD_SIGNALS = """
SELECT s.job_id, s.name, s.seq, s.payload, s.dedupe, s.actor, s.reason, s.sent_at, NULL, NULL
  FROM detent_workflow_unread u
 CROSS JOIN detent_workflow_signal s ON s.job_id = u.job_id AND s.name = u.name AND s.seq = u.seq
 WHERE u.job_id = ? AND u.seq > ? ORDER BY u.seq LIMIT ?
"""
_WAIT = WaitRow.__struct_fields__
_WAITS = f"""
SELECT x.job_id, x.n, j.task, x.tenant, x.kind, x.name, w.parked_at, x.due_at, w.version, coalesce({_IS_PARKED}, 0)
  FROM (SELECT * FROM detent_workflow_wait WHERE (job_id, n) > (:job, :n) {{which}} ORDER BY job_id, n LIMIT :limit) x
  LEFT JOIN detent_workflow w ON w.job_id = x.job_id
  LEFT JOIN detent_job j ON j.id = x.job_id
 ORDER BY x.job_id, x.n
"""
_WHICH_WAITS = {
    "job_id": "AND job_id = :job_id",
    "signal": "AND kind = 'signal' AND name = :signal",
    "tenant": "AND tenant = :tenant",
}
_GROUP = ChildGroupRow.__struct_fields__
_GROUPS = f"""
SELECT {", ".join(f"g.{name}" for name in _GROUP)}
  FROM detent_child_group g JOIN detent_workflow w ON w.job_id = g.parent_id AND w.generation = g.generation
 WHERE g.parent_id = ? ORDER BY g.path LIMIT {GROUPS_MAX}
"""
_CHILDREN = """
SELECT id FROM detent_job
 WHERE parent_id = :parent_id AND id > :after_id AND (:state IS NULL OR state = :state) ORDER BY id LIMIT :limit
"""
_CHILDREN_OF_GROUP = """
SELECT j.id FROM detent_workflow w
 CROSS JOIN detent_child_group g ON g.parent_id = w.job_id AND g.generation = w.generation AND g.path = :path
 CROSS JOIN detent_job j ON j.parent_id = w.job_id AND j.id >= g.first_id AND j.id < g.first_id + g.total
 WHERE w.job_id = :parent_id AND j.id > :after_id AND (:state IS NULL OR j.state = :state) ORDER BY j.id LIMIT :limit
"""
# From the jobs that have not ended, however many have.
_VERSIONS = """
SELECT j.task, w.version, count(*)
  FROM (SELECT job_id FROM detent_waiting UNION ALL SELECT job_id FROM detent_ready
        UNION ALL SELECT job_id FROM detent_dead
        UNION ALL SELECT held.value FROM detent_lease l, json_each(l.job_ids) held
                   WHERE EXISTS (SELECT 1 FROM detent_job r
                                  WHERE r.id = held.value AND r.lease_id = l.id AND r.state = 'running')) open
 CROSS JOIN detent_workflow w ON w.job_id = open.job_id CROSS JOIN detent_job j ON j.id = w.job_id
 WHERE ?1 IS NULL OR j.task = ?1
 GROUP BY j.task, w.version ORDER BY j.task, w.version
"""


class SqliteWorkflowLists(VerbBase):
    """The verbs that read."""

    def workflow_get(self, ids: Sequence[int]) -> list[WorkflowRow | None]:
        rows = self._db.rows(_GET, (ids_json(dict.fromkeys(ids)),))
        found = {row[0]: WorkflowRow(**fields_named(_WORKFLOW, row)) for row in rows}
        return [found.get(job_id) for job_id in ids]

    def workflow_arguments(self, job_id: int) -> list[str]:
        return [row[0] for row in self._db.rows(_ARGUMENTS, (job_id,))]

    def workflow_list(self, chosen: WorkflowSearch, *, before: int = 2**63 - 1, limit: int = 1000) -> WorkflowPage:
        asked = {name: getattr(chosen, name) for name in ("task", "version", "state", "tenant", "parked")}
        since = None if chosen.since is None else to_micros(chosen.since, field="since")
        rows = self._db.rows(_LIST, {**asked, "since": since, "before": before, "limit": limit})
        return WorkflowPage([job_id for job_id, fits in rows if fits], rows[-1][0] if len(rows) == limit else None)

    def step_list(
        self,
        job_id: int,
        *,
        generation: int | None = None,
        at: datetime | None = None,
        after: str | None = None,
        limit: int = 1000,
    ) -> StepPage:
        asked = {
            "job_id": job_id,
            "generation": generation,
            "at": None if at is None else to_micros(at, field="at"),
            "after": after or "",
            "limit": limit + 1,
        }
        rows = [step_row(row) for row in self._db.rows(_STEPS, asked)]
        return StepPage(rows[:limit], rows[limit - 1].path if len(rows) > limit else None)

    def signal_list(self, job_id: int, *, after: int = 0, limit: int = 1000, unread: bool = False) -> list[SignalRow]:
        rows = self._db.rows(_UNREAD_SIGNALS if unread else _SIGNALS, (job_id, after, limit))
        return [SignalRow(**fields_named(_SIGNAL, row)) for row in rows]

    def wait_list(
        self,
        *,
        job_id: int | None = None,
        signal: str | None = None,
        tenant: str | None = None,
        after: tuple[int, int] = (0, 0),
        limit: int = 100,
    ) -> WaitPage:
        given = {"job_id": job_id, "signal": signal, "tenant": tenant}
        asked = {name: value for name, value in given.items() if value is not None}
        which = " ".join(_WHICH_WAITS[name] for name in asked)
        rows = self._db.rows(_WAITS.format(which=which), {**asked, "job": after[0], "n": after[1], "limit": limit})
        found = [WaitRow(**fields_named(_WAIT, row[:-1])) for row in rows if row[-1]]
        return WaitPage(found, (rows[-1][0], rows[-1][1]) if len(rows) == limit else None)

    def child_groups(self, parent_id: int) -> list[ChildGroupRow]:
        return [
            ChildGroupRow(**{**fields_named(_GROUP, row), "closed": bool(row[-1])})
            for row in self._db.rows(_GROUPS, (parent_id,))
        ]

    def child_list(
        self, parent_id: int, *, path: str | None = None, state: str | None = None, after_id: int = 0, limit: int = 1000
    ) -> list[int]:
        statement = _CHILDREN if path is None else _CHILDREN_OF_GROUP
        asked = {"parent_id": parent_id, "path": path, "state": state, "after_id": after_id, "limit": limit}
        return [row[0] for row in self._db.rows(statement, asked)]

    def workflow_versions(self, task: str | None = None) -> list[VersionCount]:
        return [VersionCount(*row) for row in self._db.rows(_VERSIONS, (task,))]
