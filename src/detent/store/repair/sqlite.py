"""Repair on SQLite, in one write transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from detent.model.records import Violation
from detent.store.installed import is_newer
from detent.store.invariants import can_go_on, load, unchecked, watched
from detent.store.repair.job_projection import Key
from detent.store.repair.statements import RepairActions, Statements
from detent.store.sqlite.driver.executor import Executor, SqliteExecutor
from detent.store.sqlite.driver.failures import translated
from detent.store.sqlite.installed import expected_schema, installed
from detent.store.sqlite.verb_base import NEW_GROUP, NEW_LANE, ids_json

__all__ = ["SqliteRepair", "violations"]

_OF_THESE = "IN (SELECT value FROM json_each(?))"
_JOBS = f"""
SELECT id, tenant, task, queue, priority, due_at, expires_at, correlation_id, attempts_max, state, attempt, spared,
       ended, error, finished_at, lease_id, leased_at, started_at, committed_at, limit_key
  FROM detent_job WHERE id {_OF_THESE} ORDER BY id
"""
_EXECUTIONS = f"""
SELECT job_id, attempt, outcome, next_state, next_due_at, counted, committed_at, coalesce(done_at, aborted_at), error
  FROM detent_execution WHERE job_id {_OF_THESE} ORDER BY job_id, attempt
"""
_LINES = f"""
SELECT job_id, n, attempt, to_state, trigger, at
  FROM detent_transition_log
 WHERE job_id {_OF_THESE} AND entity = 'job' AND trigger NOT IN ('request_cancel', 'move', 'repair') ORDER BY job_id, n
"""
# A waiting row with another priority than its lane's stands in no lane.
_QUEUED = f"""
SELECT q.job_id, q.place, q.at, q.expires_at, q.holds_key, l.queue, l.task, l.tenant, l.limit_key,
       CASE WHEN q.priority IS NULL OR q.priority = l.priority THEN l.priority END
  FROM (SELECT job_id, 'ready' AS place, ready_at AS at, expires_at, holds_key, lane_id, NULL AS priority
          FROM detent_ready
        UNION ALL
        SELECT job_id, 'waiting', due_at, expires_at, holds_key, lane_id, priority FROM detent_waiting) q
  LEFT JOIN detent_lane l ON l.id = q.lane_id
 WHERE q.job_id {_OF_THESE} ORDER BY q.job_id
"""
_DEAD = f"SELECT job_id, tenant, queue, task FROM detent_dead WHERE job_id {_OF_THESE}"
_KEYS = f"SELECT job_id, tenant, key FROM detent_job_key WHERE until_claim AND job_id {_OF_THESE} ORDER BY tenant, key"
_LEASED = f"""
SELECT j.id FROM detent_job j JOIN detent_lease l ON l.id = j.lease_id
 WHERE j.id {_OF_THESE} AND EXISTS (
   SELECT 1 FROM json_each(CASE WHEN json_valid(l.job_ids) THEN l.job_ids ELSE '[]' END) held WHERE held.value = j.id)
"""
_LOG = """
INSERT INTO detent_transition_log
  (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, metadata,
   correlation_id, at)
VALUES (?, ?, ?, ?, ?, ?, ?, 'repair', ?, ?, ?, ?, ?)
"""
_SET_JOB = """
UPDATE detent_job
   SET state = :state, attempt = :attempt, ended = :ended, spared = :spared, due_at = :due_at,
       finished_at = :finished_at, committed_at = :committed_at, error = :error, lease_id = :lease_id,
       leased_at = :leased_at
 WHERE id = :id AND state = :found
"""
_LANE = """
(SELECT id FROM detent_lane
  WHERE queue = ? AND task = ? AND tenant = ? AND priority = ? AND limit_key = ? ORDER BY id LIMIT 1)
"""
_TO_READY = f"""
INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key, expires_at) VALUES ({_LANE}, ?, ?, ?, ?)
"""
_TO_WAITING = f"""
INSERT INTO detent_waiting (lane_id, due_at, job_id, holds_key, expires_at, priority) VALUES ({_LANE}, ?, ?, ?, ?, ?)
"""
_NAME_IN_LEASE = """
UPDATE detent_lease
   SET job_ids = json_insert(CASE WHEN json_valid(job_ids) THEN job_ids ELSE '[]' END, '$[#]', :job)
 WHERE id = (SELECT lease_id FROM detent_job WHERE id = :job)
"""
_NEW_LEASE = """
INSERT INTO detent_lease (id, worker, leased_at, expires_at, job_ids)
SELECT lease_id, '', leased_at, :now - 1, json_array(id) FROM detent_job WHERE id = :job
"""
_COUNT_FINISHED = """
INSERT INTO detent_finished_delta (tenant, queue, task, state, jobs)
SELECT f.tenant, f.queue, f.task, f.state, sum(f.there) - sum(f.counted)
  FROM (SELECT tenant, queue, task, state, 0 AS counted, count(*) AS there FROM detent_job
         WHERE finished_at IS NOT NULL GROUP BY tenant, queue, task, state
        UNION ALL
        SELECT tenant, queue, task, state, jobs, 0 FROM detent_job_counts
         WHERE state <> 'pending' AND state <> 'running') f
 GROUP BY f.tenant, f.queue, f.task, f.state HAVING sum(f.counted) <> sum(f.there)
"""
_DATE_JOBS = """
INSERT INTO detent_job_span (created_at, block, first_id, last_id)
SELECT j.created_at, j.id >> 10, min(j.id), max(j.id) FROM detent_job j
 WHERE NOT EXISTS (SELECT 1 FROM detent_job_span k
                    WHERE k.created_at = j.created_at AND k.block = j.id >> 10
                      AND j.id BETWEEN k.first_id AND k.last_id)
 GROUP BY j.created_at, j.id >> 10
ON CONFLICT (created_at, block, first_id) DO UPDATE SET last_id = max(last_id, excluded.last_id)
"""
_RECOUNT = """
UPDATE detent_batch_run
   SET (total, previewed, preview_failed, unchanged, queued, applying, applied, failed,
        rolled_back, reverting, revert_failed, conflicts) = (
       SELECT count(*), count(*) FILTER (WHERE g.changed IS NOT NULL),
              count(*) FILTER (WHERE g.preview_error IS NOT NULL), count(*) FILTER (WHERE NOT g.changed),
              count(*) FILTER (WHERE g.state = 'queued'), count(*) FILTER (WHERE g.state = 'applying'),
              count(*) FILTER (WHERE g.state = 'applied'), count(*) FILTER (WHERE g.state = 'failed'),
              count(*) FILTER (WHERE g.state = 'rolled_back'),
              count(*) FILTER (WHERE g.revert_state = 'reverting'),
              count(*) FILTER (WHERE g.revert_state = 'failed'),
              count(*) FILTER (WHERE g.conflict IS NOT NULL)
         FROM detent_target g WHERE g.run_id = detent_batch_run.id),
       outstanding = (SELECT count(*) FROM detent_batch_action a
                       WHERE a.run_id = detent_batch_run.id AND a.done_at IS NULL),
       mismatches = (SELECT count(*) FROM detent_mismatch m
                      WHERE m.run_id = detent_batch_run.id AND m.resolved_at IS NULL)
 WHERE id = ?
"""

_GO_ON = """
INSERT INTO detent_ids (next)
SELECT 1 + max(coalesce((SELECT max(id) FROM detent_job), 0), coalesce((SELECT max(id) FROM detent_lease), 0))
"""

_STATEMENTS = Statements(
    jobs=_JOBS,
    executions=_EXECUTIONS,
    lines=_LINES,
    queued=_QUEUED,
    dead=_DEAD,
    keys=_KEYS,
    leased=_LEASED,
    jobs_of_lines=f"SELECT n, job_id FROM detent_transition_log WHERE n {_OF_THESE} AND job_id IS NOT NULL",
    log=_LOG,
    set_job=_SET_JOB,
    new_group=NEW_GROUP,
    new_lane=NEW_LANE,
    to_ready=_TO_READY,
    to_waiting=_TO_WAITING,
    not_ready="DELETE FROM detent_ready WHERE job_id = ?",
    not_waiting="DELETE FROM detent_waiting WHERE job_id = ?",
    add_dead="INSERT INTO detent_dead (job_id, tenant, queue, task, reason, quarantined_at) VALUES (?, ?, ?, ?, ?, ?)",
    remove_dead="DELETE FROM detent_dead WHERE job_id = ?",
    name_in_lease=_NAME_IN_LEASE,
    new_lease=_NEW_LEASE,
    drop_key="DELETE FROM detent_job_key WHERE job_id = ? AND tenant = ? AND key = ? AND until_claim",
    free_slot="DELETE FROM detent_limit_slot WHERE limit_key = ? AND job_id = ?",
    recount=_RECOUNT,
    count_finished=_COUNT_FINISHED,
    list_jobs=(
        _DATE_JOBS,
        """
        DELETE FROM detent_unsuccessful WHERE NOT EXISTS (
          SELECT 1 FROM detent_job j WHERE j.id = detent_unsuccessful.job_id AND j.state = detent_unsuccessful.state)
        """,
        """
        INSERT INTO detent_unsuccessful (state, job_id)
        SELECT j.state, j.id FROM detent_job j WHERE j.state IN ('failed', 'cancelled') AND NOT EXISTS (
          SELECT 1 FROM detent_unsuccessful u WHERE u.state = j.state AND u.job_id = j.id)
        """,
    ),
    new_id="UPDATE detent_ids SET next = next + 1 RETURNING next - 1",
)


def violations(
    executor: Executor, now: int, watch: Callable[[int], None] | None = None, *, schema: bool = True
) -> list[Violation]:
    """Every row that breaks an invariant, by the invariants' names. Without `schema`, the schema is not compared."""
    found = []
    for invariant in watched(load("sqlite", schema=schema), watch):
        try:
            rows = executor.rows(invariant.sql, {"now": now})
        except sqlite3.DatabaseError as error:
            known = translated(error, "this file")
            if not can_go_on(known):
                raise
            found.append(unchecked(invariant.name, known))
        else:
            found += [Violation(invariant.name, *(str(part) for part in row)) for row in rows]
    return found


class SqliteRepair(RepairActions):
    """See `apply.RepairDatabase`. The caller owns the transaction; `now` is its time."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        super().__init__(_STATEMENTS, now)
        self._db = connection

    def _execute(self, sql: str, params: Any = ()) -> tuple[list[tuple[Any, ...]], int]:
        cursor = self._db.execute(sql, params)
        # The rows first: a change with RETURNING is counted when they are all told.
        return cursor.fetchall(), cursor.rowcount

    def _listed(self, ids: Sequence[int]) -> str:
        return ids_json(ids)

    # -- looking -----------------------------------------------------------------------------------------------

    def violations(self) -> list[Violation]:
        mine = not is_newer(installed(self._db))
        return violations(SqliteExecutor(self._db), self._now, schema=mine)

    def keys_named(self, names: Sequence[str]) -> list[Key]:
        rows, _ = self._execute("SELECT job_id, tenant, key FROM detent_job_key WHERE until_claim")
        return [key for key in map(Key._make, rows) if f"{key.tenant}/{key.key}" in names]

    def owner_must(self, kind: str, name: str) -> str | None:
        match kind:
            case "trigger" | "sequence":
                return None
            case "index":
                return f"DROP INDEX IF EXISTS {name}; {expected_schema()[kind, name]};"
            case _:
                return f"make {name} anew as the migrations define it, and copy its rows"

    # -- doing -------------------------------------------------------------------------------------------------

    def lock_out_writers(self) -> None:
        """Nobody else writes in a write transaction of SQLite's."""

    def undo_if_refused(self, work: Callable[[], None]) -> str | None:
        self._execute("SAVEPOINT detent_repair")
        try:
            work()
        except sqlite3.DatabaseError as error:
            if not can_go_on(translated(error, "this file")):
                raise
            self._execute("ROLLBACK TO detent_repair")
            return str(error)
        finally:
            self._execute("RELEASE detent_repair")
        return None

    def restore(self, kind: str, name: str) -> None:
        if kind == "sequence":
            self._execute("DELETE FROM detent_ids")
            self._execute(_GO_ON)
            return
        self._execute(f"DROP TRIGGER IF EXISTS {name}")
        self._execute(expected_schema()[kind, name])
