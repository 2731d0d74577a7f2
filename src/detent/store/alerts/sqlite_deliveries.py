"""Deliveries of alerts on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from detent.model.alert_records import Delivery, DeliveryOutcome, DeliveryRow, Notice, Route
from detent.model.clock import from_micros
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import VerbBase, ids_json, micros

__all__ = ["SqliteAlertDeliveries"]

_NOTICE = Notice.__struct_fields__
_ROW = DeliveryRow.__struct_fields__
_TIMES = ("since", "at", "due_at", "sent_at")
_SPREAD = """
INSERT INTO detent_alert_delivery (notice_n, sink, due_at)
SELECT n, :sink, :now FROM detent_alert_notice
 WHERE NOT spread AND severity IN (SELECT value FROM json_each(:severities))
"""
_IS_SPREAD = "UPDATE detent_alert_notice SET spread = 1 WHERE NOT spread"
_IS_TAKEN = "SELECT 1 FROM detent_alert_delivery WHERE sink = ? AND state = 'pending' AND taken_until > ? LIMIT 1"
_SENT = "SELECT count(*) FROM detent_alert_delivery WHERE sink = ? AND state = 'sent' AND sent_at > ?"
_PENDING = f"""
SELECT {", ".join(f"a.{name}" for name in _NOTICE)}, d.tries + 1
  FROM detent_alert_delivery d JOIN detent_alert_notice a ON a.n = d.notice_n
 WHERE d.sink = ? AND d.state = 'pending' ORDER BY d.notice_n LIMIT ?
"""
_FIRST_DUE = "SELECT due_at FROM detent_alert_delivery WHERE sink = ? AND state = 'pending' ORDER BY notice_n LIMIT 1"
_TAKEN = """
UPDATE detent_alert_delivery SET taken_until = ?, tries = tries + 1
 WHERE sink = ? AND notice_n IN (SELECT value FROM json_each(?))
"""
_TOLD = """
UPDATE detent_alert_delivery
   SET state = :state, error = :error, taken_until = NULL, due_at = :due, tries = max(tries - :untried, 0),
       sent_at = CASE WHEN :state <> 'pending' THEN :now END
 WHERE notice_n = :notice AND sink = :sink AND state = 'pending'
"""
_DELIVERIES = """
SELECT d.sink, a.kind, a.episode, a.message, a.at, d.state, d.tries, d.due_at, d.sent_at, d.error
  FROM detent_alert_notice a JOIN detent_alert_delivery d ON d.notice_n = a.n
 WHERE a.policy = ? AND a.scope = ? ORDER BY a.n DESC, d.sink LIMIT ?
"""
_REMIND = """
UPDATE detent_alert SET notified_at = :now
 WHERE state = 'firing' AND acknowledged_at IS NULL AND notified_at <= :before
RETURNING policy, scope
"""
_STILL = """
INSERT INTO detent_alert_notice (policy, scope, episode, kind, severity, message, facts, value, since, at)
SELECT policy, scope, episode, 'still', severity, message, facts, value, since, :now
  FROM detent_alert WHERE policy = :policy AND scope = :scope
"""
_OLD = "SELECT n FROM detent_alert_notice WHERE at < ? ORDER BY at, n LIMIT 1000"
_OLD_GO = (
    "DELETE FROM detent_alert_delivery WHERE notice_n IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_alert_notice WHERE n IN (SELECT value FROM json_each(?))",
)
_RESOLVED_GO = """
DELETE FROM detent_alert
 WHERE resolved_at < ? AND NOT EXISTS (
   SELECT 1 FROM detent_alert_notice n
    WHERE n.policy = detent_alert.policy AND n.scope = detent_alert.scope AND n.kind <> 'still')
"""
_ERROR_MAX = 2000


class SqliteAlertDeliveries(VerbBase):
    """`alert_spread`, `alert_take`, `alert_outcomes_put`, `alert_deliveries` and `alert_sweep`."""

    def alert_spread(self, routes: Sequence[Route]) -> int:
        now, made = self._now(), 0
        for route in routes:
            made += self._db.change(
                _SPREAD, {"sink": route.sink, "severities": json.dumps(route.severities), "now": now}
            )
        self._db.change(_IS_SPREAD)
        return made

    def alert_take(self, sink: str, minute_max: int, limit: int, seconds: float) -> tuple[list[Delivery], int]:
        now = self._now()
        ((sent,),) = self._db.rows(_SENT, (sink, now - micros(60)))
        if sent >= minute_max or self._db.rows(_IS_TAKEN, (sink, now)):
            return [], 0
        first = self._db.rows(_FIRST_DUE, (sink,))
        rows = self._db.rows(_PENDING, (sink, limit)) if first and first[0][0] <= now else []
        found = [Delivery(Notice(**_timed(_NOTICE, row[:-1])), row[-1]) for row in rows]
        if not found:
            return [], 0
        self._db.change(_TAKEN, (now + micros(seconds), sink, ids_json(one.notice.n for one in found)))
        return found, minute_max - sent

    def alert_outcomes_put(self, sink: str, items: Sequence[DeliveryOutcome]) -> None:
        now = self._now()
        for item in items:
            told = {"state": item.state, "notice": item.notice_n, "sink": sink, "now": now}
            error = None if item.error is None else item.error[:_ERROR_MAX]
            self._db.change(
                _TOLD, told | {"error": error, "due": now + micros(item.delay), "untried": int(not item.tried)}
            )

    def alert_deliveries(self, policy: str, scope: str, limit: int = 100) -> list[DeliveryRow]:
        return [DeliveryRow(**_timed(_ROW, row)) for row in self._db.rows(_DELIVERIES, (policy, scope, limit))]

    def alert_sweep(self, remind_after: float, keep: float) -> int:
        now = self._now()
        reminded = self._db.rows(_REMIND, {"now": now, "before": now - micros(remind_after)})
        for policy, scope in sorted(reminded):
            self._db.change(_STILL, {"policy": policy, "scope": scope, "now": now})
        before = now - micros(keep)
        if old := [n for (n,) in self._db.rows(_OLD, (before,))]:
            for statement in _OLD_GO:
                self._db.change(statement, (ids_json(old),))
        self._db.change(_RESOLVED_GO, (before,))
        return len(reminded)


def _timed(fields: tuple[str, ...], row: Row) -> dict[str, Any]:
    named = dict(zip(fields, row, strict=True))
    return named | {name: from_micros(at) for name, at in named.items() if name in _TIMES and isinstance(at, int)}
