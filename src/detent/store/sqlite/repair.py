"""Repair's hands on a SQLite file: its statements, inside one write transaction."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from detent.model.records import Violation
from detent.store.invariants import load
from detent.store.invariants.expected import sqlite_schema
from detent.store.rebuild import DeadRow, Execution, Facts, Job, Key, Line, Projection, Queued
from detent.store.repair_plan import LogLine
from detent.store.sqlite.driver.executor import Executor
from detent.store.sqlite.verbs.base import ids_json

__all__ = ["SqliteHands", "violations"]

_OF_THESE = "IN (SELECT value FROM json_each(?))"
_JOBS = f"""
SELECT id, tenant, task, queue, priority, due_at, expires_at, correlation_id, attempts_max, state, attempt, spared,
       ended, error, finished_at, lease_id, leased_at, started_at, committed_at
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
SELECT q.job_id, q.place, q.at, q.expires_at, q.holds_key, l.queue, l.task, l.tenant,
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
_NEW_LANE = "INSERT INTO detent_lane (queue, task, tenant, priority) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_LANE = "(SELECT id FROM detent_lane WHERE queue = ? AND task = ? AND tenant = ? AND priority = ? ORDER BY id LIMIT 1)"
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


def violations(executor: Executor, now: int) -> list[Violation]:
    """Every row that breaks an invariant, by the invariants' names."""
    return [
        Violation(invariant.name, *(str(part) for part in row))
        for invariant in load("sqlite")
        for row in executor.rows(invariant.sql, {"now": now})
    ]


class SqliteHands:
    """See `repair.Hands`. The transaction is the caller's; `now` is its time."""

    def __init__(self, executor: Executor, now: int) -> None:
        self._db = executor
        self._now = now

    # -- looking -----------------------------------------------------------------------------------------------

    def violations(self) -> list[Violation]:
        return violations(self._db, self._now)

    def jobs_of_lines(self, numbers: Sequence[int]) -> dict[int, int]:
        sql = f"SELECT n, job_id FROM detent_transition_log WHERE n {_OF_THESE} AND job_id IS NOT NULL"
        return dict(self._db.rows(sql, (ids_json(numbers),)))

    def keys_named(self, names: Sequence[str]) -> list[Key]:
        rows = self._db.rows("SELECT job_id, tenant, key FROM detent_job_key WHERE until_claim") if names else []
        return [key for key in map(Key._make, rows) if f"{key.tenant}/{key.key}" in names]

    def facts(self, job_ids: Sequence[int]) -> list[Facts]:
        executions = self._by_job(_EXECUTIONS, job_ids, Execution._make)
        lines = self._by_job(_LINES, job_ids, Line._make)
        queued = self._by_job(_QUEUED, job_ids, Queued._make)
        dead = self._by_job(_DEAD, job_ids, DeadRow._make)
        keys = self._by_job(_KEYS, job_ids, Key._make)
        leased = {job_id for (job_id,) in self._db.rows(_LEASED, (ids_json(job_ids),))}
        return [
            Facts(
                job,
                tuple(executions[job.id]),
                tuple(lines[job.id]),
                tuple(queued[job.id]),
                next(iter(dead[job.id]), None),
                job.id in leased,
                tuple(keys[job.id]),
            )
            for job in map(Job._make, self._db.rows(_JOBS, (ids_json(job_ids),)))
        ]

    def owner_must(self, kind: str, name: str) -> str | None:
        match kind:
            case "trigger":
                return None
            case "index":
                return f"DROP INDEX IF EXISTS {name}; {sqlite_schema()[kind, name]};"
            case _:
                return f"make {name} anew as the migrations define it, and copy its rows"

    # -- doing -------------------------------------------------------------------------------------------------

    def hold_still(self) -> None:
        """Nobody else writes in a write transaction of SQLite's."""

    def unless_refused(self, work: Callable[[], None]) -> str | None:
        self._db.change("SAVEPOINT detent_repair")
        try:
            work()
        except sqlite3.IntegrityError as error:
            self._db.change("ROLLBACK TO detent_repair")
            return str(error)
        finally:
            self._db.change("RELEASE detent_repair")
        return None

    def log(self, line: LogLine, actor: str, reason: str) -> None:
        what = (line.tenant, line.entity, line.entity_id, line.job_id, line.attempt, line.from_state, line.to_state)
        self._db.change(_LOG, (*what, actor, reason, line.metadata, line.correlation_id, self._now))

    def set_job(self, job: Job, to: Projection) -> None:
        leased = to.state == "running"
        self._db.change(
            _SET_JOB,
            {
                "id": job.id,
                "found": job.state,
                "state": to.state,
                "attempt": to.attempt,
                "ended": to.ended,
                "spared": to.spared,
                "due_at": to.due_at,
                "finished_at": to.finished_at,
                "committed_at": to.committed_at,
                "error": to.error,
                "lease_id": self._new_id() if leased and job.lease_id is None else job.lease_id,
                "leased_at": self._now if leased and to.leased_at is None else to.leased_at,
            },
        )

    def queue(self, job: Job, due_at: Any, holds_key: bool) -> None:
        self.unqueue(job.id)
        lane = (job.queue, job.task, job.tenant, job.priority)
        self._db.change(_NEW_LANE, lane)
        if due_at <= self._now:
            self._db.change(_TO_READY, (*lane, due_at, job.id, holds_key, job.expires_at))
        else:
            self._db.change(_TO_WAITING, (*lane, due_at, job.id, holds_key, job.expires_at, job.priority))

    def unqueue(self, job_id: int) -> None:
        self._db.change("DELETE FROM detent_ready WHERE job_id = ?", (job_id,))
        self._db.change("DELETE FROM detent_waiting WHERE job_id = ?", (job_id,))

    def bury(self, job: Job, reason: str, at: Any) -> None:
        self.unbury(job.id)
        sql = "INSERT INTO detent_dead (job_id, tenant, queue, task, reason, quarantined_at) VALUES (?, ?, ?, ?, ?, ?)"
        self._db.change(sql, (job.id, job.tenant, job.queue, job.task, reason, at))

    def unbury(self, job_id: int) -> None:
        self._db.change("DELETE FROM detent_dead WHERE job_id = ?", (job_id,))

    def lease(self, job_id: int) -> None:
        if not self._db.change(_NAME_IN_LEASE, {"job": job_id}):
            self._db.change(_NEW_LEASE, {"job": job_id, "now": self._now})

    def drop_key(self, key: Key) -> None:
        sql = "DELETE FROM detent_job_key WHERE job_id = ? AND tenant = ? AND key = ? AND until_claim"
        self._db.change(sql, key)

    def restore(self, kind: str, name: str) -> None:
        self._db.change(f"DROP TRIGGER IF EXISTS {name}")
        self._db.change(sqlite_schema()[kind, name])

    def _new_id(self) -> int:
        ((new,),) = self._db.rows("UPDATE detent_ids SET next = next + 1 RETURNING next - 1")
        return int(new)

    def _by_job(self, sql: str, job_ids: Sequence[int], make: Callable[[Any], Any]) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = defaultdict(list)
        for row in self._db.rows(sql, (ids_json(job_ids),)):
            found[row[0]].append(make(row))
        return found
