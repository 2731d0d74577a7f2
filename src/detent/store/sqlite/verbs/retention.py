"""Retention of limits that a template made."""

from __future__ import annotations

import json

from detent.model.service_records import LimitsPruned
from detent.store.sqlite.verbs.limits import LimitVerbs

__all__ = ["RetentionVerbs"]

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


class RetentionVerbs(LimitVerbs):
    """`limit_prune`."""

    def limit_prune(self, after: str, limit: int) -> LimitsPruned:
        """A walk along the limits."""
        for (key,) in self._db.rows(_LEFT_OVER, (after, limit)):
            self._sweep(key, self._now())
        looked = self._db.rows(_LIMITS, {"now": self._now(), "after": after, "limit": limit})
        gone = json.dumps([key for key, goes in looked if goes])
        for statement in _LIMITS_GO:
            self._db.change(statement, (gone,))
        return LimitsPruned(sum(goes for _, goes in looked), looked[-1][0] if looked and len(looked) == limit else None)
