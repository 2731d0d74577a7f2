"""Jobs that nothing is heard of, and what becomes of them."""

from __future__ import annotations

from typing import Any

from detent.model.clock import from_micros
from detent.model.records import Moved
from detent.model.service_records import RecoveryRow, SilentRow
from detent.store.sqlite.verbs.base import VerbBase, micros

__all__ = ["SilenceVerbs"]

_SILENT = SilentRow.__struct_fields__
_RECOVERY = RecoveryRow.__struct_fields__
_FIND = f"""
SELECT {", ".join(_SILENT)} FROM (
  SELECT j.id AS job_id, j.attempt, j.queue, j.task, l.worker,
         CASE WHEN j.started_at IS NULL THEN 'stale' ELSE 'stalled' END AS kind,
         max(j.leased_at, coalesce(j.started_at, 0), coalesce((
           SELECT e.at FROM detent_event e WHERE e.job_id = j.id ORDER BY e.seq DESC LIMIT 1), 0)) AS since
    FROM detent_lease l, json_each(l.job_ids) held
    JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
   WHERE l.expires_at > :now AND j.committed_at IS NULL AND j.cancel_requested_at IS NULL
     AND (:queue IS NULL OR j.queue = :queue))
 WHERE since <= CASE kind WHEN 'stale' THEN :stale ELSE :stalled END
 ORDER BY since, job_id LIMIT :limit
"""
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


class SilenceVerbs(VerbBase):
    """`job_silent`, `recovery_set` and `recovery_list`."""

    def job_silent(
        self, queue: str | None, stale_after: float | None, stalled_after: float | None, limit: int
    ) -> list[SilentRow]:
        """Found through their leases."""
        now = self._now()
        where = {
            "queue": queue,
            "stale": None if stale_after is None else now - micros(stale_after),
            "stalled": None if stalled_after is None else now - micros(stalled_after),
            "now": now,
            "limit": limit,
        }
        return [SilentRow(**_timed(_SILENT, row, "since")) for row in self._db.rows(_FIND, where)]

    def recovery_set(
        self,
        queue: str,
        stale_after: float | None,
        stalled_after: float | None,
        actor: str,
        reason: str | None = None,
    ) -> Moved:
        """On record."""
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
        """By name."""
        return [RecoveryRow(**_timed(_RECOVERY, row, "changed_at")) for row in self._db.rows(_LIST)]


def _timed(fields: tuple[str, ...], row: tuple[Any, ...], time: str) -> dict[str, Any]:
    named = dict(zip(fields, row, strict=True))
    return named | {time: from_micros(named[time])}
