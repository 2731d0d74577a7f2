"""Policies and measures of alerts on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from detent.model.alert_records import Asked, Each, Figure, Measure, Policy, PolicyRow
from detent.model.clock import from_micros
from detent.model.records import Moved
from detent.store.alerts.sqlite import SqliteAlerts
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import micros

__all__ = ["SqliteAlertMeasures"]

_SET = Policy.__struct_fields__
_FIELDS = PolicyRow.__struct_fields__
_POLICIES = f"SELECT {', '.join(_FIELDS)} FROM detent_alert_policy ORDER BY name"
_POLICY = f"SELECT {', '.join(_SET)} FROM detent_alert_policy WHERE name = ?"
_PUT = f"""
INSERT INTO detent_alert_policy ({", ".join(_SET)}, changed_by, reason, changed_at)
VALUES ({", ".join(f":{name}" for name in _SET)}, :actor, :reason, :now)
ON CONFLICT (name) DO UPDATE
  SET measure = :measure, each = :each, severity = :severity, threshold = :threshold, window_seconds = :window_seconds,
      count_min = :count_min, calm_seconds = :calm_seconds, message = :message, enabled = :enabled,
      changed_by = :actor, reason = :reason, changed_at = :now
"""
_DROP = "DELETE FROM detent_alert_policy WHERE name = ?"
_LOG = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('alert_policy', ?, ?, ?, ?, ?, ?, ?)
"""
_FIRING_OF = "SELECT scope FROM detent_alert WHERE policy = ? AND state = 'firing' ORDER BY scope"

_FIRST_LOOK = "INSERT INTO detent_alert_look (name, at) VALUES ('tally', ?) ON CONFLICT (name) DO NOTHING"
_LAST_LOOK = "SELECT at FROM detent_alert_look WHERE name = 'tally'"
_LOOKED = "UPDATE detent_alert_look SET at = ? WHERE name = 'tally'"
_HELD = "SELECT coalesce(sum(json_array_length(job_ids)), 0) FROM detent_lease"
# A sample of the jobs, chosen by a hash of their ids: every second job may well be of the same task.
_RESTED = """
SELECT queue, task, sum(succeeded), sum(failed) FROM (
  SELECT j.queue, j.task, sum(j.state = 'succeeded') * :every AS succeeded,
         sum(j.state <> 'succeeded') * :every AS failed
    FROM detent_lease l, json_each(l.job_ids) held CROSS JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id
   WHERE held.value % 1000003 * 2654435761 / 65536 % :every = 0
     AND j.finished_at > :since AND j.finished_at <= :now AND j.state IN ('succeeded', 'failed', 'quarantined')
   GROUP BY j.queue, j.task
  UNION ALL
  SELECT j.queue, j.task, 0, count(*)
    FROM detent_execution e INDEXED BY detent_execution_troubled CROSS JOIN detent_job j ON j.id = e.job_id
   WHERE (outcome = 'throttled' OR (outcome = 'expired' AND next_state <> 'pending'))
     AND e.outcome = 'expired' AND e.next_state <> 'cancelled' AND e.aborted_at > :since AND e.aborted_at <= :now
   GROUP BY j.queue, j.task)
 GROUP BY queue, task
"""
_TALLY = """
INSERT INTO detent_alert_tally (minute, queue, task, succeeded, failed) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (minute, queue, task) DO UPDATE
  SET succeeded = succeeded + excluded.succeeded, failed = failed + excluded.failed
"""
_OLD_COUNTS_GO = "DELETE FROM detent_alert_tally WHERE minute < ?"
_COUNTS_KEPT = micros(86_400)
_MINUTE = micros(60)
_BEFORE_THE_FIRST = micros(15 * 60)

_RATE = """
SELECT {key} AS scope, sum(succeeded) * 1.0 / sum(succeeded + failed), sum(succeeded + failed)
  FROM detent_alert_tally WHERE minute > :after GROUP BY scope HAVING sum(succeeded + failed) > 0 ORDER BY scope
"""
_DEAD = """
SELECT {key} AS scope, count(*), count(*)
  FROM (SELECT queue, task FROM detent_dead LIMIT :most) GROUP BY scope ORDER BY scope
"""
_THROTTLED = """
SELECT {key} AS scope, count(*), count(*)
  FROM (SELECT e.job_id FROM detent_execution e INDEXED BY detent_execution_troubled
         WHERE (outcome = 'throttled' OR (outcome = 'expired' AND next_state <> 'pending'))
           AND e.outcome = 'throttled' AND e.aborted_at > :after ORDER BY e.aborted_at DESC LIMIT :most) troubled
  CROSS JOIN detent_job j ON j.id = troubled.job_id
 GROUP BY scope ORDER BY scope
"""
_OPEN = "SELECT key, 1, 1 FROM detent_rate_limit WHERE open_until IS NOT NULL ORDER BY key LIMIT :most"
_OLDEST = """
WITH RECURSIVE standing (lane_id) AS (
  SELECT min(lane_id) FROM detent_ready
  UNION ALL
  SELECT (SELECT r.lane_id FROM detent_ready r WHERE r.lane_id > s.lane_id ORDER BY r.lane_id LIMIT 1)
    FROM standing s WHERE s.lane_id IS NOT NULL LIMIT :most)
SELECT {key} AS scope, (:now - min((SELECT r.ready_at FROM detent_ready r
                                     WHERE r.lane_id = s.lane_id ORDER BY r.ready_at LIMIT 1))) / 1000000.0, count(*)
  FROM standing s JOIN detent_lane l ON l.id = s.lane_id
 WHERE NOT EXISTS (SELECT 1 FROM detent_queue q WHERE q.name = l.queue AND q.paused_at IS NOT NULL)
 GROUP BY scope ORDER BY scope
"""
_UNDELIVERED = """
SELECT '', n, n FROM (
  SELECT (SELECT count(*) FROM (SELECT 1 FROM detent_alert_notice WHERE NOT spread LIMIT :most))
       + (SELECT count(*) FROM (SELECT 1 FROM detent_alert_delivery WHERE state = 'pending' LIMIT :most)) AS n)
 WHERE n > 0
"""
_BY: dict[Measure, str] = {
    "success_rate": _RATE,
    "dead_letters": _DEAD,
    "throttled": _THROTTLED,
    "breaker_open": _OPEN,
    "oldest_ready": _OLDEST,
    "undelivered": _UNDELIVERED,
}
_KEYS: dict[Each, str] = {"whole": "''", "queue": "queue", "task": "task", "limit": "''"}
_FIGURES = {(measure, each): sql.format(key=key) for measure, sql in _BY.items() for each, key in _KEYS.items()}
_MOST = 10_000


class SqliteAlertMeasures(SqliteAlerts):
    """`alert_policy_put`, `alert_policy_drop`, `alert_policy_list`, `alert_tally`, `alert_figures`, `alert_measure`."""

    def alert_policy_put(self, item: Policy, actor: str, reason: str | None = None) -> Moved:
        now = self._now()
        fields = {name: getattr(item, name) for name in _SET}
        state = "on" if item.enabled else "off"
        was = self._db.rows(_POLICY, (item.name,))
        if was and dict(zip(_SET, was[0], strict=True)) == fields:
            return Moved(item.name, state, False)
        self._db.change(_PUT, fields | {"actor": actor, "reason": reason, "now": now})
        self._db.change(_LOG, (item.name, _state(was), state, "set", actor, reason, now))
        if not item.enabled:
            for (scope,) in self._db.rows(_FIRING_OF, (item.name,)):
                self.alert_resolve(item.name, scope, "its policy was switched off", actor=actor)
        return Moved(item.name, state, True)

    def alert_policy_drop(self, name: str, actor: str, reason: str | None = None) -> Moved:
        was = self._db.rows(_POLICY, (name,))
        if was:
            self._db.change(_DROP, (name,))
            self._db.change(_LOG, (name, _state(was), "default", "drop", actor, reason, self._now()))
        return Moved(name, "default", bool(was))

    def alert_policy_list(self) -> list[PolicyRow]:
        return [_policy(row) for row in self._db.rows(_POLICIES)]

    def alert_tally(self, jobs_max: int) -> int:
        now = self._now()
        # The first tally also counts what ended shortly before it: jobs may have failed before a worker tallied.
        self._db.change(_FIRST_LOOK, (now - _BEFORE_THE_FIRST,))
        ((since,),) = self._db.rows(_LAST_LOOK)
        if now <= since:
            return 0
        ((held,),) = self._db.rows(_HELD)
        rested = self._db.rows(_RESTED, {"every": max(1, -(-held // jobs_max)), "since": since, "now": now})
        self._db.change_many(_TALLY, [(now - now % _MINUTE, *row) for row in rested])
        self._db.change(_LOOKED, (now,))
        self._db.change(_OLD_COUNTS_GO, (now - _COUNTS_KEPT,))
        return int(sum(succeeded + failed for _, _, succeeded, failed in rested))

    def alert_figures(self, measure: Measure, each: Each, window_seconds: float) -> list[Figure]:
        if measure == "event":
            return []
        now = self._now()
        where = {"after": now - micros(window_seconds), "now": now, "most": _MOST}
        rows = self._db.rows(_FIGURES[measure, each], where)
        return [Figure(scope, float(value), count) for scope, value, count in rows]

    def alert_measure(self, asked: Sequence[Asked]) -> list[list[Figure]]:
        return [self.alert_figures(*one) for one in asked]


def _state(was: list[Row]) -> str:
    return "default" if not was else "on" if was[0][_SET.index("enabled")] else "off"


def _policy(row: Row) -> PolicyRow:
    fields = dict(zip(_FIELDS, row, strict=True))
    return PolicyRow(**fields | {"enabled": bool(fields["enabled"]), "changed_at": from_micros(fields["changed_at"])})
