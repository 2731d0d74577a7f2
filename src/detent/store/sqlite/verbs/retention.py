"""Retention of what belongs to no job: keys, limits that a template made, lines of the log, horizons."""

from __future__ import annotations

import json
from datetime import datetime

from detent.model.clock import to_micros
from detent.model.service_records import KeysForgotten, LimitsPruned, LinesPruned
from detent.store.sqlite.verbs.base import ids_json
from detent.store.sqlite.verbs.limits import LimitVerbs
from detent.store.sqlite.verbs.services import HORIZON

__all__ = ["RetentionVerbs"]

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
# A key whose bucket is full and that nothing runs under says nothing that its template does not.
_LIMITS = """
SELECT key, template IS NOT NULL AND held_at IS NULL AND open_until IS NULL AND throttled = 0
            AND coalesce(paused_until <= :now, true)
            AND (rate IS NULL OR tokens + rate / per * (max(:now - refilled_at, 0) / 1000000.0) >= burst)
            AND NOT EXISTS (SELECT 1 FROM detent_limit_slot s
                              JOIN detent_job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
                             WHERE s.limit_key = l.key)
  FROM detent_rate_limit l WHERE key > :after ORDER BY key LIMIT :limit
"""
_LEFT_OVER = """
SELECT key FROM (SELECT key FROM detent_rate_limit WHERE key > ? ORDER BY key LIMIT ?)
 WHERE EXISTS (SELECT 1 FROM detent_limit_slot s
                 LEFT JOIN detent_job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
                WHERE s.limit_key = key AND j.id IS NULL)
"""
_LIMITS_GO = (
    "DELETE FROM detent_limit_slot WHERE limit_key IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_rate_limit WHERE key IN (SELECT value FROM json_each(?))",
)
_HORIZONS_GO = """
DELETE FROM detent_horizon
 WHERE n IN (SELECT n FROM detent_horizon
              WHERE before < :before AND at < :before AND before < (SELECT max(before) FROM detent_horizon)
              ORDER BY before LIMIT :limit)
"""
_LINES = "SELECT n, at < ?, job_id IS NULL FROM detent_transition_log WHERE n > ? ORDER BY n LIMIT ?"
_LINES_GO = """
DELETE FROM detent_transition_log
 WHERE n IN (SELECT value FROM json_each(:lines))
   AND CASE entity
         WHEN 'batch_run' THEN NOT EXISTS (SELECT 1 FROM detent_batch_run WHERE id = CAST(entity_id AS INTEGER))
         WHEN 'pipeline_run' THEN NOT EXISTS (SELECT 1 FROM detent_pipeline_run WHERE id = CAST(entity_id AS INTEGER))
         ELSE EXISTS (SELECT 1 FROM detent_transition_log l
                       WHERE l.job_id IS NULL AND l.entity = detent_transition_log.entity
                         AND l.entity_id = detent_transition_log.entity_id AND l.n > detent_transition_log.n
                         AND l.at < :before)
       END
"""


class RetentionVerbs(LimitVerbs):
    """`key_expire`, `key_forget`, `limit_prune` and `log_prune`."""

    def key_expire(self, limit: int) -> int:
        """The longest expired first."""
        return self._db.change(_EXPIRED, (self._now(), limit))

    def key_forget(self, after: tuple[str, str], limit: int) -> KeysForgotten:
        """A walk along the keys."""
        looked = self._db.rows(_KEYS, (*after, limit))
        gone = [(tenant, key) for tenant, key, goes in looked if goes]
        self._db.change_many(_KEY_GOES, gone)
        return KeysForgotten(len(gone), (looked[-1][0], looked[-1][1]) if looked and len(looked) == limit else None)

    def limit_prune(self, after: str, limit: int) -> LimitsPruned:
        """A walk along the limits."""
        for (key,) in self._db.rows(_LEFT_OVER, (after, limit)):
            self._sweep(key, self._now())
        looked = self._db.rows(_LIMITS, {"now": self._now(), "after": after, "limit": limit})
        gone = json.dumps([key for key, goes in looked if goes])
        for statement in _LIMITS_GO:
            self._db.change(statement, (gone,))
        return LimitsPruned(sum(goes for _, goes in looked), looked[-1][0] if looked and len(looked) == limit else None)

    def log_prune(self, before: datetime, after: int, limit: int, actor: str) -> LinesPruned:
        """The horizon first: the guards let nothing go that is not below it."""
        horizon = to_micros(before, field="before")
        self._db.change(HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        self._db.change(_HORIZONS_GO, {"before": horizon, "limit": limit})
        looked = self._db.rows(_LINES, (horizon, after, limit))
        old = [n for n, is_old, of_no_job in looked if is_old and of_no_job]
        gone = self._db.change(_LINES_GO, {"lines": ids_json(old), "before": horizon}) if old else 0
        # Lines are written in the order of time, but for those of one moment: a portion without an old one is the last.
        goes_on = len(looked) == limit and any(is_old for _, is_old, _ in looked)
        return LinesPruned(gone, looked[-1][0] if goes_on else None)
