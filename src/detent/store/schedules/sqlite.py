"""Schedules and declarations on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError, NotFound
from detent.model.clock import from_micros, to_micros
from detent.model.records import Enqueued, Moved, NewJob
from detent.model.service_records import DeclarationRow, Declared, DeclaredKind, Fire, NewSchedule, ScheduleRow
from detent.store.jobs.sqlite_enqueue import SqliteEnqueue
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import micros

__all__ = ["SqliteSchedules"]

_FIELDS = ScheduleRow.__struct_fields__
_ROW = f"SELECT {', '.join(_FIELDS)} FROM detent_schedule"
_OF_NAME = f"{_ROW} WHERE name = ?"
_ALL = f"{_ROW} ORDER BY name"
_DUE = f"{_ROW} WHERE next_at <= ? AND paused_at IS NULL ORDER BY next_at, name LIMIT ?"
_NEW = """
INSERT INTO detent_schedule (name, tenant, cron, zone, catch_up, task, payload, queue, priority, attempts_max,
  dead_letter, idempotent, unique_pending, limit_key, cost, next_at, changed_at)
VALUES (:name, :tenant, :cron, :zone, :catch_up, :task, :payload, :queue, :priority, :attempts_max, :dead_letter,
  :idempotent, :unique_pending, :limit_key, :cost, :next_at, :now)
"""
_CHANGE = """
UPDATE detent_schedule
   SET tenant = :tenant, cron = :cron, zone = :zone, catch_up = :catch_up, task = :task, payload = :payload,
       queue = :queue, priority = :priority, attempts_max = :attempts_max, dead_letter = :dead_letter,
       idempotent = :idempotent, unique_pending = :unique_pending, limit_key = :limit_key, cost = :cost,
       changed_at = :now, next_at = CASE WHEN cron = :cron AND zone = :zone THEN next_at ELSE :next_at END
 WHERE name = :name
"""
_LOG = """
INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES (?, 'schedule', ?, ?, ?, ?, ?, ?, ?)
"""
_GO = ("DELETE FROM detent_schedule WHERE name = ?", "DELETE FROM detent_schedule_fire WHERE schedule = ?")
_PAUSE = "UPDATE detent_schedule SET paused_at = ?, paused_by = ?, reason = ? WHERE name = ?"
_RESUME = "UPDATE detent_schedule SET paused_at = NULL, paused_by = NULL, reason = NULL, next_at = ? WHERE name = ?"
_MOVE_ON = """
UPDATE detent_schedule SET next_at = :next, last_at = coalesce(:last, last_at)
 WHERE name = :name AND next_at = :expected AND paused_at IS NULL
"""
_FIRED = """
INSERT INTO detent_schedule_fire (schedule, fire_at, job_id, at) VALUES (?, ?, ?, ?)
ON CONFLICT (schedule, fire_at) DO NOTHING
"""
_STANDS_FOR = "UPDATE detent_schedule_fire SET job_id = ? WHERE schedule = ? AND job_id = ?"
_OLD_FIRES_GO = "DELETE FROM detent_schedule_fire WHERE schedule = ? AND fire_at < ?"
_FIRES_KEPT = micros(30 * 86_400)
_CALLED_FOR = tuple(name for name in NewSchedule.__struct_fields__ if name != "next_at")
_DECLARATIONS = "SELECT n, fingerprint FROM detent_declaration WHERE kind = ? AND name = ? ORDER BY n"
_NEW_DECLARATION = "INSERT INTO detent_declaration (kind, name, n, fingerprint, at) VALUES (?, ?, ?, ?, ?)"
_FORGET_DECLARATIONS = "DELETE FROM detent_declaration WHERE kind = ? AND name = ? AND n <= ?"
_DECLARATIONS_KEPT = 50
_LIST_DECLARATIONS = """
SELECT d.kind, d.name, d.fingerprint, d.at FROM detent_declaration d
 WHERE d.fingerprint <> ''
   AND d.n = (SELECT max(o.n) FROM detent_declaration o WHERE o.kind = d.kind AND o.name = d.name)
 ORDER BY d.kind, d.name
"""


class SqliteSchedules(SqliteEnqueue):
    """The verbs of schedules and declarations."""

    def schedule_put(self, item: NewSchedule, actor: str = "client", reason: str | None = None) -> ScheduleRow:
        now = self._now()
        fields = {name: getattr(item, name) for name in NewSchedule.__struct_fields__}
        fields |= {"next_at": to_micros(item.next_at, field="next_at"), "now": now}
        was = self._schedule(item.name)
        if was is None:
            self._db.change(_NEW, fields)
            self._log_schedule(item.tenant, item.name, None, "active", "create", actor, reason, now)
        elif any(getattr(was, name) != getattr(item, name) for name in _CALLED_FOR):
            self._db.change(_CHANGE, fields)
            state = _state(was)
            self._log_schedule(item.tenant, item.name, state, state, "change", actor, reason, now)
        found = self._schedule(item.name)
        assert found is not None
        return found

    def schedule_remove(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        was = self._schedule(name)
        if was is None:
            return NotFound("schedule", name)
        self._log_schedule(was.tenant, name, _state(was), "removed", "remove", actor, reason, self._now())
        for statement in _GO:
            self._db.change(statement, (name,))
        return Moved(name, "removed", True)

    def schedule_pause(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        was = self._schedule(name)
        if was is None:
            return NotFound("schedule", name)
        if was.paused_at is None:
            now = self._now()
            self._log_schedule(was.tenant, name, "active", "paused", "pause", actor, reason, now)
            self._db.change(_PAUSE, (now, actor, reason, name))
        return Moved(name, "paused", was.paused_at is None)

    def schedule_resume(
        self, name: str, next_at: datetime, actor: str, reason: str | None = None
    ) -> Moved | DetentError:
        was = self._schedule(name)
        if was is None:
            return NotFound("schedule", name)
        if was.paused_at is not None:
            self._log_schedule(was.tenant, name, "paused", "active", "resume", actor, reason, self._now())
            self._db.change(_RESUME, (to_micros(next_at, field="next_at"), name))
        return Moved(name, "active", was.paused_at is not None)

    def schedule_run(self, name: str, job: NewJob, actor: str, reason: str | None = None) -> Enqueued | DetentError:
        row = self._schedule(name)
        if row is None:
            return NotFound("schedule", name)
        self._log_schedule(row.tenant, name, _state(row), _state(row), "run_now", actor, reason, self._now())
        (answer,) = self.job_enqueue([job])
        if isinstance(answer, DetentError):
            raise answer
        return answer

    def schedule_list(self) -> list[ScheduleRow]:
        return [_schedule(row) for row in self._db.rows(_ALL)]

    def schedule_due(self, limit: int) -> list[ScheduleRow]:
        return [_schedule(row) for row in self._db.rows(_DUE, (self._now(), limit))]

    def schedule_fire(
        self, name: str, expected: datetime, fires: Sequence[Fire], next_at: datetime
    ) -> list[int] | None:
        """Record the ticks, then enqueue the jobs of those that are new."""
        now = self._now()
        ticks = [to_micros(fire.fire_at, field="fire_at") for fire in fires]
        current, following = to_micros(expected, field="expected"), to_micros(next_at, field="next_at")
        move = {"name": name, "expected": current, "next": following, "last": max(ticks, default=None)}
        if not self._db.change(_MOVE_ON, move):
            return None
        jobs = []
        for tick, fire in zip(ticks, fires, strict=True):
            fresh = self._db.change(_FIRED, (name, tick, None if fire.job is None else fire.job.id, now))
            if fresh and fire.job is not None:
                jobs.append(fire.job)
        self._db.change(_OLD_FIRES_GO, (name, now - _FIRES_KEPT))
        made = []
        for job, answer in zip(jobs, self.job_enqueue(jobs), strict=True):
            if isinstance(answer, DetentError):
                raise answer
            if answer.created:
                made.append(job.id)
            else:
                self._db.change(_STANDS_FOR, (answer.job_id, name, job.id))
        return made

    def declaration_put(self, kind: DeclaredKind, name: str, fingerprint: str, again: bool) -> Declared:
        known = self._db.rows(_DECLARATIONS, (kind, name))
        number, newest = known[-1] if known else (0, "")
        if newest == fingerprint:
            return "same"
        if not again and any(row[1] == fingerprint for row in known):
            return "replaced"
        self._db.change(_NEW_DECLARATION, (kind, name, number + 1, fingerprint, self._now()))
        self._db.change(_FORGET_DECLARATIONS, (kind, name, number + 1 - _DECLARATIONS_KEPT))
        return "new"

    def declaration_list(self) -> list[DeclarationRow]:
        return [
            DeclarationRow(kind=kind, name=name, fingerprint=found, at=from_micros(at))
            for kind, name, found, at in self._db.rows(_LIST_DECLARATIONS)
        ]

    def _schedule(self, name: str) -> ScheduleRow | None:
        found = self._db.rows(_OF_NAME, (name,))
        return _schedule(found[0]) if found else None

    def _log_schedule(
        self, tenant: str, name: str, was: str | None, to: str, trigger: str, actor: str, reason: str | None, at: int
    ) -> None:
        self._db.change(_LOG, (tenant, name, was, to, trigger, actor, reason, at))


def _state(row: ScheduleRow) -> str:
    return "active" if row.paused_at is None else "paused"


def _schedule(row: Row) -> ScheduleRow:
    fields = dict(zip(_FIELDS, row, strict=True))
    times = {
        name: value if value is None else from_micros(value) for name, value in fields.items() if name[-3:] == "_at"
    }
    flags = {name: bool(fields[name]) for name in ("dead_letter", "idempotent", "unique_pending")}
    return ScheduleRow(**fields | times | flags)
