"""Alerts on SQLite."""

from __future__ import annotations

from typing import Any

from detent.errors import DetentError, NotFound
from detent.model.alert_records import AlertPlace, AlertRow, Severity, alert_id
from detent.model.clock import from_micros, to_micros
from detent.model.records import Moved
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import VerbBase, micros

__all__ = ["SqliteAlerts"]

_MESSAGE_MAX = 2000
_FIELDS = AlertRow.__struct_fields__
_ROW = f"SELECT {', '.join(_FIELDS)} FROM detent_alert"
_OF = f"{_ROW} WHERE policy = ? AND scope = ?"
_NEWEST = "ORDER BY since DESC, policy DESC, scope DESC LIMIT :limit"
_LIST = f"{_ROW} WHERE state = :state {_NEWEST}"
_LIST_AFTER = f"{_ROW} WHERE state = :state AND (since, policy, scope) < (:since, :policy, :scope) {_NEWEST}"
_STATES = ("firing", "resolved")
_POLICY = "SELECT enabled, severity FROM detent_alert_policy WHERE name = ?"
_NEW = """
INSERT INTO detent_alert (policy, scope, severity, state, message, facts, value, since, last_at, notified_at)
VALUES (:policy, :scope, :severity, 'firing', :message, :facts, :value, :now, :now, :now)
"""
_ANEW = """
UPDATE detent_alert
   SET severity = :severity, state = 'firing', episode = episode + 1, message = :message, facts = :facts,
       value = :value, raised = 1, since = :now, last_at = :now, notified_at = :now, resolved_at = NULL,
       acknowledged_at = NULL, acknowledged_by = NULL, acknowledged_reason = NULL
 WHERE policy = :policy AND scope = :scope AND state = 'resolved'
"""
_ONCE_MORE = """
UPDATE detent_alert
   SET severity = :severity, message = :message, facts = :facts, value = :value, raised = raised + 1, last_at = :now
 WHERE policy = :policy AND scope = :scope AND state = 'firing'
"""
_OVER = """
UPDATE detent_alert SET state = 'resolved', resolved_at = :now, notified_at = :now
 WHERE policy = :policy AND scope = :scope AND state = 'firing'
"""
_ACK = """
UPDATE detent_alert SET acknowledged_at = ?, acknowledged_by = ?, acknowledged_reason = ?
 WHERE policy = ? AND scope = ? AND state = 'firing' AND acknowledged_at IS NULL
"""
_NOTICE = """
INSERT INTO detent_alert_notice (policy, scope, episode, kind, severity, message, facts, value, since, at)
SELECT policy, scope, episode, :kind, severity, :message, facts, value, since, :now
  FROM detent_alert WHERE policy = :policy AND scope = :scope
"""
_LOG = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
VALUES ('alert', ?, ?, ?, ?, ?, ?, ?, ?)
"""


class SqliteAlerts(VerbBase):
    """`alert_raise`, `alert_resolve`, `alert_ack` and `alert_list`."""

    def alert_raise(
        self,
        policy: str,
        scope: str,
        severity: Severity,
        message: str,
        facts: str | None = None,
        value: float | None = None,
        actor: str = "system",
        reason: str | None = None,
    ) -> Moved:
        name = alert_id(policy, scope)
        for enabled, of_policy in self._db.rows(_POLICY, (policy,)):
            if not enabled:
                return Moved(name, "off", False)
            severity = of_policy
        was = self._alert(policy, scope)
        now = self._now() if was is None else max(self._now(), was["last_at"])
        told: dict[str, Any] = {
            "policy": policy,
            "scope": scope,
            "severity": severity,
            "message": message[:_MESSAGE_MAX],
        }
        told |= {"facts": facts, "value": value, "now": now}
        if was is not None and was["state"] == "firing":
            self._db.change(_ONCE_MORE, told)
            return Moved(name, "firing", False)
        self._db.change(_NEW if was is None else _ANEW, told)
        stood, why = None if was is None else "resolved", told["message"] if reason is None else reason
        self._log_alert(name, stood, "firing", "raise", actor, why, facts, now)
        self._db.change(_NOTICE, told | {"kind": "firing"})
        return Moved(name, "firing", True)

    def alert_resolve(self, policy: str, scope: str, message: str, calm: float = 0.0, actor: str = "system") -> Moved:
        name = alert_id(policy, scope)
        was = self._alert(policy, scope)
        if was is None or was["state"] == "resolved":
            return Moved(name, "resolved", False)
        now = max(self._now(), was["last_at"])
        if now - was["last_at"] < micros(calm):
            return Moved(name, "firing", False)
        told = {"policy": policy, "scope": scope, "message": message[:_MESSAGE_MAX], "now": now}
        self._db.change(_OVER, told)
        self._log_alert(name, "firing", "resolved", "resolve", actor, told["message"], None, now)
        self._db.change(_NOTICE, told | {"kind": "resolved"})
        return Moved(name, "resolved", True)

    def alert_ack(self, policy: str, scope: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        name = alert_id(policy, scope)
        was = self._alert(policy, scope)
        if was is None:
            return NotFound("alert", name)
        now = max(self._now(), was["last_at"])
        changed = bool(self._db.change(_ACK, (now, actor, reason, policy, scope)))
        if changed:
            self._log_alert(name, "firing", "firing", "acknowledge", actor, reason, None, now)
        return Moved(name, was["state"], changed)

    def alert_get(self, policy: str, scope: str) -> AlertRow | None:
        return next((_alert(row) for row in self._db.rows(_OF, (policy, scope))), None)

    def alert_list(self, state: str | None = None, limit: int = 100, after: AlertPlace | None = None) -> list[AlertRow]:
        found: list[AlertRow] = []
        for of_state in _STATES:
            if of_state != (state or of_state) or (after is not None and of_state < after.state):
                continue
            chosen: dict[str, Any] = {"state": of_state, "limit": limit - len(found)}
            if after is not None and of_state == after.state:
                since = to_micros(after.since, field="after")
                rows = self._db.rows(
                    _LIST_AFTER, chosen | {"since": since, "policy": after.policy, "scope": after.scope}
                )
            else:
                rows = self._db.rows(_LIST, chosen)
            found += map(_alert, rows)
        return found

    def _alert(self, policy: str, scope: str) -> dict[str, Any] | None:
        found = self._db.rows(_OF, (policy, scope))
        return dict(zip(_FIELDS, found[0], strict=True)) if found else None

    def _log_alert(
        self,
        name: str,
        was: str | None,
        to: str,
        trigger: str,
        actor: str,
        reason: str | None,
        facts: str | None,
        now: int,
    ) -> None:
        self._db.change(_LOG, (name, was, to, trigger, actor, reason, facts, now))


def _alert(row: Row) -> AlertRow:
    fields = dict(zip(_FIELDS, row, strict=True))
    times = ("since", "last_at", "notified_at", "resolved_at", "acknowledged_at")
    return AlertRow(**fields | {name: fields[name] and from_micros(fields[name]) for name in times})
