"""The mailboxes of workflows on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, JobEnded, KeyConflict, MailboxFull, NotFound, WaitOver
from detent.model.workflow_records import NewSignal, SignalSent
from detent.store.sqlite.verb_base import Job
from detent.store.workflows.rules import UNREAD_MAX
from detent.store.workflows.sqlite_waits import SqliteWaits

__all__ = ["SqliteSignals"]

_SAME = "SELECT seq, payload FROM detent_workflow_signal WHERE job_id = ? AND name = ? AND dedupe = ?"
_LAST = "SELECT coalesce(max(seq), 0) FROM detent_workflow_signal WHERE job_id = ? AND name = ?"
_UNREAD = f"""
SELECT count(*) FROM (SELECT 1 FROM detent_workflow_unread WHERE job_id = ? LIMIT {UNREAD_MAX})
"""
_NEW_SIGNAL = """
INSERT INTO detent_workflow_signal (job_id, name, seq, payload, dedupe, actor, reason, sent_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""

_OVER = """
SELECT 1 FROM detent_workflow WHERE job_id = ?1 AND generation <> ?2
UNION ALL
SELECT 1 FROM detent_workflow_step b
  JOIN detent_workflow_step s ON s.job_id = ?1 AND s.generation = ?2 AND s.path = b.fingerprint
 WHERE b.job_id = ?1 AND b.generation = ?2 AND b.path = ?3
"""


class SqliteSignals(SqliteWaits):
    """`signal_send`, `signal_redeem` and `signal_key`."""

    def signal_send(self, items: Sequence[NewSignal], *, apart: bool = False) -> list[SignalSent | DetentError]:
        """differs: `apart` makes no difference, since an open transaction blocks all other writers anyway."""
        now = self._now()
        jobs = self._jobs(dict.fromkeys(item.job_id for item in items))
        unread: dict[int, int] = {}
        return [self._send(item, jobs.get(item.job_id), unread, now) for item in items]

    def _send(self, item: NewSignal, job: Job | None, unread: dict[int, int], now: int) -> SignalSent | DetentError:
        if job is None:
            return NotFound("job", str(item.job_id))
        if item.dedupe is not None:
            for seq, payload in self._db.rows(_SAME, (item.job_id, item.name, item.dedupe)):
                if payload != item.payload:
                    return KeyConflict(item.dedupe, job.tenant, item.job_id, "signal")
                return SignalSent(item.job_id, seq, False)
        if job.state in ("succeeded", "failed", "cancelled"):
            return JobEnded(item.job_id, job.state)
        if item.job_id not in unread:
            ((unread[item.job_id],),) = self._db.rows(_UNREAD, (item.job_id,))
        if unread[item.job_id] >= UNREAD_MAX:
            return MailboxFull(item.job_id, unread[item.job_id])
        unread[item.job_id] += 1
        ((last,),) = self._db.rows(_LAST, (item.job_id, item.name))
        seq = max(self.ids_reserve(1), last + 1)
        sent_at = max(now, job.last_at)
        about = (item.payload, item.dedupe, item.actor, item.reason, sent_at)
        self._db.change(_NEW_SIGNAL, (item.job_id, item.name, seq, *about))
        self._wake_up(item.job_id, now, item.name)
        return SignalSent(item.job_id, seq, True)

    def signal_redeem(self, item: NewSignal, generation: int, token: str) -> SignalSent | DetentError:
        job = self._jobs([item.job_id]).get(item.job_id)
        is_open = job is not None and job.state in ("pending", "running", "quarantined")
        if (
            is_open
            and not self._db.rows(_SAME, (item.job_id, item.name, item.dedupe))
            and self._db.rows(_OVER, (item.job_id, generation, token))
        ):
            return WaitOver(item.job_id, item.name)
        return self._send(item, job, {}, self._now())

    def signal_key(self) -> str | None:
        return next((str(row[0]) for row in self._db.rows("SELECT secret FROM detent_signal_key WHERE n = 1")), None)
