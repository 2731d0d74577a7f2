"""The upkeep of jobs on SQLite: promotion, silent jobs, failure hooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from detent.model.clock import from_micros, to_micros
from detent.model.records import Moved
from detent.model.service_records import JobsLeft, RecoveryRow, SilentRow, TaskSecrets, TaskTimes
from detent.model.workflow_records import NEVER
from detent.store.limits.sqlite_lanes import Wanted
from detent.store.sqlite.verb_base import VerbBase, ids_json, micros

__all__ = ["TO_READY", "SqliteUpkeep"]

_SILENT = SilentRow.__struct_fields__
_RECOVERY = RecoveryRow.__struct_fields__
_FIND = f"""
SELECT {", ".join(_SILENT)} FROM (
  SELECT j.id AS job_id, j.attempt, j.queue, j.task, l.worker, s.stale_after, s.stalled_after,
         CASE WHEN j.started_at IS NULL THEN 'stale' ELSE 'stalled' END AS kind,
         max(j.leased_at, coalesce(j.started_at, 0), coalesce((
           SELECT e.at FROM detent_event e WHERE e.job_id = j.id ORDER BY e.seq DESC LIMIT 1), 0)) AS since
    FROM detent_lease l CROSS JOIN json_each(l.job_ids) held
    CROSS JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
    LEFT JOIN detent_task_times s ON s.task = j.task
   WHERE l.expires_at > :now AND j.committed_at IS NULL AND j.cancel_requested_at IS NULL
     AND (:queue IS NULL OR j.queue = :queue)
     AND (:leases IS NULL OR l.id IN (SELECT value FROM json_each(:leases))))
 WHERE since <= :now - 1000000 * CASE kind WHEN 'stale' THEN coalesce(stale_after, :stale)
                                           ELSE coalesce(stalled_after, :stalled) END
 ORDER BY since, job_id LIMIT :limit
"""
_TIMES = TaskTimes.__struct_fields__
_PUT_TIMES = """
INSERT INTO detent_task_times (task, stale_after, stalled_after, result_ttl) VALUES (?, ?, ?, ?)
ON CONFLICT (task) DO UPDATE
  SET stale_after = excluded.stale_after, stalled_after = excluded.stalled_after, result_ttl = excluded.result_ttl
"""
_NO_TIMES = "DELETE FROM detent_task_times WHERE task = ?"
_LIST_TIMES = f"SELECT {', '.join(_TIMES)} FROM detent_task_times ORDER BY task"
_PUT_SECRET = "INSERT INTO detent_task_secret (task, path) VALUES (?, ?) ON CONFLICT DO NOTHING"
_NO_SECRETS = "DELETE FROM detent_task_secret WHERE task = ?"
_LIST_SECRETS = "SELECT task, path FROM detent_task_secret ORDER BY task, path"
_OF_QUEUE = "SELECT stale_after, stalled_after FROM detent_recovery WHERE queue = ?"
_LOG = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('recovery', ?, ?, ?, 'set', ?, ?, ?)
"""
_SET = """
INSERT INTO detent_recovery (queue, stale_after, stalled_after, changed_by, reason, changed_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (queue) DO UPDATE
  SET stale_after = excluded.stale_after, stalled_after = excluded.stalled_after, changed_by = excluded.changed_by,
      reason = excluded.reason, changed_at = excluded.changed_at
"""
_UNSET = "DELETE FROM detent_recovery WHERE queue = ?"
_LIST = f"SELECT {', '.join(_RECOVERY)} FROM detent_recovery ORDER BY queue"

_DUE = """
SELECT lane_id, due_at, job_id, holds_key, expires_at FROM detent_waiting
 WHERE limit_key IS NULL AND due_at <= ? ORDER BY due_at, job_id LIMIT ?
"""
# Jobs that are ready are looked for in the range of each group. A parked workflow stands in `waiting`.
_MINE = """
WITH mine AS (
  SELECT g.id FROM detent_lane_group g
   WHERE g.task IN (SELECT value FROM json_each(:tasks))
     AND (:queues IS NULL OR g.queue IN (SELECT value FROM json_each(:queues)))
     AND (g.version = 0 OR :versions IS NULL
          OR EXISTS (SELECT 1 FROM json_each(:versions) v WHERE v.value ->> 0 = g.task AND v.value ->> 1 = g.version))
)
"""
_LEFT = f"""
{_MINE}
SELECT EXISTS (
    SELECT 1 FROM mine WHERE EXISTS (
      SELECT 1 FROM detent_ready r WHERE r.lane_id > (mine.id << 32) AND r.lane_id < ((mine.id + 1) << 32)))
  OR EXISTS (
    SELECT 1 FROM detent_lease l CROSS JOIN json_each(l.job_ids) held
     CROSS JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
     WHERE j.task IN (SELECT value FROM json_each(:tasks))
       AND (:queues IS NULL OR j.queue IN (SELECT value FROM json_each(:queues))))
"""
_NEVER = to_micros(NEVER, field="due_at")
_PORTION = (
    "SELECT job_id, lane_id, limit_key, due_at FROM detent_waiting WHERE job_id > :after ORDER BY job_id LIMIT :limit"
)
_WAITING = f"""
{_MINE}
SELECT w.job_id FROM ({_PORTION}) w
 WHERE w.lane_id >> 32 IN (SELECT id FROM mine) AND (w.limit_key IS NOT NULL OR w.due_at < {_NEVER} AND NOT EXISTS (
   SELECT 1 FROM detent_workflow f JOIN detent_job j ON j.id = f.job_id
    WHERE f.job_id = w.job_id AND f.parked_attempt = j.ended))
 LIMIT 1
"""
_LOOKED_AT = f"SELECT count(*), max(job_id) FROM ({_PORTION})"
TO_READY = "INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key, expires_at) VALUES (?, ?, ?, ?, ?)"
_NOT_WAITING = "DELETE FROM detent_waiting WHERE job_id IN (SELECT value FROM json_each(?))"
_UNDELIVERED = """
SELECT job_id, attempt FROM detent_failure_report
 WHERE task = :task AND coalesce(taken_until <= :now, true) ORDER BY job_id, attempt LIMIT :limit
"""
_PUT_REPORT = """
INSERT INTO detent_failure_report (job_id, attempt, task) VALUES (?, ?, ?) ON CONFLICT (job_id, attempt) DO NOTHING
"""
_KEEP = "UPDATE detent_failure_report SET taken_until = ? WHERE job_id = ? AND attempt = ?"
_TOLD = "DELETE FROM detent_failure_report WHERE job_id = ? AND attempt = ?"


class SqliteUpkeep(VerbBase):
    """Promotion, silent jobs and failure hooks."""

    def job_promote(self, limit: int) -> int:
        due = self._db.rows(_DUE, (self._now(), limit))
        if due:
            self._db.change_many(TO_READY, due)
            self._db.change(_NOT_WAITING, (ids_json(row[2] for row in due),))
        return len(due)

    def job_silent(
        self,
        queue: str | None,
        stale_after: float | None,
        stalled_after: float | None,
        limit: int,
        lease_ids: Sequence[int] | None = None,
    ) -> list[SilentRow]:
        where = {
            "queue": queue,
            "stale": stale_after,
            "stalled": stalled_after,
            "now": self._now(),
            "limit": limit,
            "leases": None if lease_ids is None else ids_json(lease_ids),
        }
        return [SilentRow(**_timed(_SILENT, row, "since")) for row in self._db.rows(_FIND, where)]

    def task_times_put(self, items: Sequence[TaskTimes]) -> None:
        said = {name: rest for name, *rest in self._db.rows(_LIST_TIMES)}
        for item in items:
            times = [item.stale_after, item.stalled_after, item.result_ttl]
            if times == [None, None, None]:
                self._db.change(_NO_TIMES, (item.task,))
            elif said.get(item.task) != times:
                self._db.change(_PUT_TIMES, (item.task, *times))

    def task_times_list(self) -> list[TaskTimes]:
        return [TaskTimes(**dict(zip(_TIMES, row, strict=True))) for row in self._db.rows(_LIST_TIMES)]

    def task_secrets_put(self, items: Sequence[TaskSecrets], replace: bool) -> None:
        for item in items:
            if replace:
                self._db.change(_NO_SECRETS, (item.task,))
            self._db.change_many(_PUT_SECRET, [(item.task, path) for path in item.paths])

    def task_secrets_list(self) -> list[TaskSecrets]:
        found: dict[str, list[str]] = {}
        for task, path in self._db.rows(_LIST_SECRETS):
            found.setdefault(task, []).append(path)
        return [TaskSecrets(task=task, paths=tuple(paths)) for task, paths in found.items()]

    def recovery_set(
        self,
        queue: str,
        stale_after: float | None,
        stalled_after: float | None,
        actor: str,
        reason: str | None = None,
    ) -> Moved:
        now = self._now()
        found = self._db.rows(_OF_QUEUE, (queue,))
        was, state = "automatic" if found else "approval", "automatic"
        if stale_after is None and stalled_after is None:
            state = "approval"
        if (found[0] if found else (None, None)) == (stale_after, stalled_after):
            return Moved(queue, state, False)
        self._db.change(_LOG, (queue, was, state, actor, reason, now))
        if state == "automatic":
            self._db.change(_SET, (queue, stale_after, stalled_after, actor, reason, now))
        else:
            self._db.change(_UNSET, (queue,))
        return Moved(queue, state, True)

    def recovery_list(self) -> list[RecoveryRow]:
        return [RecoveryRow(**_timed(_RECOVERY, row, "changed_at")) for row in self._db.rows(_LIST)]

    def job_left(
        self,
        tasks: Sequence[str],
        queues: Sequence[str] | None,
        versions: Mapping[str, Sequence[int]] | None = None,
        *,
        after: int = 0,
        limit: int = 10_000,
    ) -> JobsLeft:
        wanted = Wanted.of(tasks, queues, None, versions, 0)
        asked = {"tasks": wanted.tasks, "queues": wanted.queues, "versions": wanted.versions}
        portion = {"after": after, "limit": limit}
        if self._db.rows(_LEFT, asked)[0][0]:
            return JobsLeft(True, 0)
        for (job_id,) in self._db.rows(_WAITING, asked | portion):
            return JobsLeft(True, job_id - 1)
        ((looked, last),) = self._db.rows(_LOOKED_AT, portion)
        return JobsLeft(False, last if looked == limit else None)

    def failure_report_take(self, tasks: Sequence[str], limit: int, seconds: float) -> list[tuple[int, int]]:
        """Read task by task, since the index is by task."""
        chosen = {"now": self._now(), "limit": limit}
        found = [row for task in dict.fromkeys(tasks) for row in self._db.rows(_UNDELIVERED, chosen | {"task": task})]
        taken = sorted((job_id, attempt) for job_id, attempt in found)[:limit]
        self.failure_report_keep(taken, seconds)
        return taken

    def failure_report_put(self, items: Sequence[tuple[int, int, str]]) -> None:
        self._db.change_many(_PUT_REPORT, items)

    def failure_report_keep(self, failures: Sequence[tuple[int, int]], seconds: float) -> None:
        until = self._now() + micros(seconds)
        self._db.change_many(_KEEP, [(until, *failure) for failure in failures])

    def failure_report_done(self, failures: Sequence[tuple[int, int]]) -> None:
        self._db.change_many(_TOLD, failures)


def _timed(fields: tuple[str, ...], row: tuple[Any, ...], time: str) -> dict[str, Any]:
    named = dict(zip(fields, row, strict=True))
    return named | {time: from_micros(named[time])}
