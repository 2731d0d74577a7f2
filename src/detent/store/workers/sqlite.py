"""Workers and services on SQLite."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from detent.errors import DetentError, NotFound
from detent.model.clock import from_micros, to_micros
from detent.model.service_records import Agenda, WorkerRow, WorkerSeen
from detent.store.sqlite.verb_base import VerbBase, micros

__all__ = ["SqliteWorkers"]

_SEEN = """
UPDATE detent_worker
   SET name = :name, host = :host, pid = :pid, queues = :queues, tasks = :tasks, slots = :slots, running = :running,
       stopping = :stopping, versions = :versions, seen_at = max(seen_at, :now)
 WHERE id = :id
RETURNING drain_requested_by, drain_reason
"""
_NEW = """
INSERT INTO detent_worker (id, name, host, pid, queues, tasks, slots, running, stopping, versions, started_at, seen_at)
VALUES (:id, :name, :host, :pid, :queues, :tasks, :slots, :running, :stopping, :versions, :now, :now)
"""
_WATCH = """
UPDATE detent_watch
   SET gap_from = CASE WHEN watched_at < :now - 5000000 THEN watched_at ELSE gap_from END,
       gap_to = CASE WHEN watched_at < :now - 5000000 THEN :now ELSE gap_to END, watched_at = :now
 WHERE (watched_at BETWEEN :now - 1000000 AND :now) IS NOT TRUE
"""
_FORGET = "DELETE FROM detent_worker WHERE seen_at < ?"
_FORGOTTEN_AFTER = micros(86_400)
_LATEST = to_micros(datetime(9000, 1, 1, tzinfo=UTC), field="latest")
_TERM_MAX = micros(3_600)
"""Longer than any service is taken for. A term that ends later is damage, and must not block the service."""
_TIMES = ("promote_at", "expire_at", "reap_at", "schedule_at", "reconcile_at")
_SIGNS = ("operations", "recovery", "failure_reports", "firing", "notices", "wake_requests", "tree_cancels")
_AGENDA = """
SELECT (SELECT min(due_at) FROM detent_waiting WHERE limit_key IS NULL),
       (SELECT min(at) FROM (SELECT min(expires_at) AS at FROM detent_ready WHERE expires_at IS NOT NULL
                             UNION ALL SELECT min(expires_at) FROM detent_waiting WHERE expires_at IS NOT NULL)),
       held.first_at,
       (SELECT min(next_at) FROM detent_schedule WHERE paused_at IS NULL),
       (SELECT min(reconcile_at) FROM detent_batch_run WHERE reconcile_at IS NOT NULL),
       EXISTS (SELECT 1 FROM detent_operation WHERE state = 'running'),
       EXISTS (SELECT 1 FROM detent_recovery),
       EXISTS (SELECT 1 FROM detent_failure_report),
       EXISTS (SELECT 1 FROM detent_alert WHERE state = 'firing'),
       EXISTS (SELECT 1 FROM detent_alert_notice WHERE NOT spread)
         OR EXISTS (SELECT 1 FROM detent_alert_delivery WHERE state = 'pending'),
       EXISTS (SELECT 1 FROM detent_wake_request),
       EXISTS (SELECT 1 FROM detent_tree_cancel),
       (SELECT max(oldest_code) FROM detent_migration),
       held.lease_checksum
  FROM (SELECT min(expires_at) AS first_at, sum(expires_at % 4503599627370496) AS lease_checksum
          FROM (SELECT expires_at FROM detent_lease ORDER BY expires_at LIMIT 100)) held
"""
_GONE = "DELETE FROM detent_worker WHERE id = ?"
_FIELDS = WorkerRow.__struct_fields__
_WORKERS = f"SELECT {', '.join(_FIELDS)} FROM detent_worker"
_LIST = f"{_WORKERS} WHERE id > ? AND seen_at >= ? ORDER BY id LIMIT ?"
_GET = f"{_WORKERS} WHERE id = ?"
_DRAIN = """
UPDATE detent_worker SET drain_requested_at = :now, drain_requested_by = :actor, drain_reason = :reason
 WHERE id = :id AND drain_requested_at IS NULL
"""
_DRAIN_LOG = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('worker', CAST(:id AS TEXT), 'open', 'draining', 'drain', :actor, :reason, :now)
"""
_TAKE = """
INSERT INTO detent_service AS s (name, holder, term, expires_at) VALUES (:name, :holder, 1, :until)
ON CONFLICT (name) DO UPDATE
  SET holder = :holder, expires_at = :until, term = s.term + (s.holder <> :holder OR s.expires_at <= :now)
  WHERE s.holder = :holder OR s.expires_at <= :now OR s.expires_at > :now + :longest
RETURNING term
"""
_DROP = "UPDATE detent_service SET expires_at = :now WHERE name = :name AND holder = :holder AND expires_at > :now"


class SqliteWorkers(VerbBase):
    """The verbs of workers and services."""

    def worker_seen(self, seen: WorkerSeen) -> Agenda:
        now = self._now()
        told = {name: getattr(seen, name) for name in WorkerSeen.__struct_fields__}
        told |= {"queues": None if seen.queues is None else json.dumps(seen.queues), "tasks": json.dumps(seen.tasks)}
        told |= {"versions": json.dumps(seen.versions)}
        self._db.change(_WATCH, {"now": now})
        asked = self._db.rows(_SEEN, told | {"now": now})
        if not asked:
            self._db.change(_NEW, told | {"now": now})
            self._db.change(_FORGET, (now - _FORGOTTEN_AFTER,))
        drain_requested_by, drain_reason = asked[0] if asked else (None, None)
        *found, schema_demanded, lease_checksum = self._db.rows(_AGENDA)[0]
        times = {name: _agenda_time(at) for name, at in zip(_TIMES, found, strict=False)}
        signs = {name: bool(sign) for name, sign in zip(_SIGNS, found[len(_TIMES) :], strict=True)}
        fields: dict[str, Any] = {"now": from_micros(now), "lease_checksum": lease_checksum} | times | signs
        fields["schema_demanded"] = schema_demanded
        return Agenda(**fields, drain_requested_by=drain_requested_by, drain_reason=drain_reason)

    def worker_gone(self, worker_id: int) -> None:
        self._db.change(_GONE, (worker_id,))

    def worker_list(self, within: float, after_id: int = 0, limit: int = 1000) -> list[WorkerRow]:
        rows = self._db.rows(_LIST, (after_id, self._now() - micros(within), limit))
        return [_worker(dict(zip(_FIELDS, row, strict=True))) for row in rows]

    def worker_get(self, worker_id: int) -> WorkerRow | None:
        return next((_worker(dict(zip(_FIELDS, row, strict=True))) for row in self._db.rows(_GET, (worker_id,))), None)

    def worker_drain(self, worker_id: int, actor: str, reason: str | None = None) -> WorkerRow | DetentError:
        asked = {"id": worker_id, "actor": actor, "reason": reason, "now": self._now()}
        if self._db.change(_DRAIN, asked):
            self._db.change(_DRAIN_LOG, asked)
        return self.worker_get(worker_id) or NotFound("worker", str(worker_id))

    def service_take(self, name: str, holder: int, seconds: float) -> int | None:
        now = self._now()
        term = {"until": now + micros(seconds), "now": now, "longest": max(_TERM_MAX, micros(seconds))}
        taken = self._db.rows(_TAKE, {"name": name, "holder": holder} | term)
        return int(taken[0][0]) if taken else None

    def service_drop(self, name: str, holder: int) -> None:
        self._db.change(_DROP, {"name": name, "holder": holder, "now": self._now()})


def _agenda_time(at: int | None) -> datetime | None:
    """Clamp a time that no calendar has: only a damaged row can have one, and it must not stop the services."""
    return None if at is None else from_micros(min(max(at, 0), _LATEST))


def _worker(fields: dict[str, Any]) -> WorkerRow:
    names = {name: fields[name] and tuple(json.loads(fields[name])) for name in ("queues", "tasks")}
    times = {name: from_micros(fields[name]) for name in ("started_at", "seen_at")}
    if fields["drain_requested_at"] is not None:
        times["drain_requested_at"] = from_micros(fields["drain_requested_at"])
    versions = {task: tuple(several) for task, several in json.loads(fields["versions"]).items()}
    return WorkerRow(**fields | names | times | {"stopping": bool(fields["stopping"]), "versions": versions})
