"""Effects outside of the database on SQLite, and the identities from which their keys are made."""

from __future__ import annotations

from detent.errors import DetentError
from detent.model.clock import from_micros
from detent.model.records import EffectBegun, EffectEvidence
from detent.model.service_records import IdentityRow
from detent.store.jobs.sqlite_endings import SqliteEndings

__all__ = ["SqliteEffects"]

_BEGIN = """
UPDATE detent_job SET started_at = coalesce(started_at, ?), effect_evidence = ?
 WHERE id = ? AND attempt = ? AND state = 'running' AND committed_at IS NULL
RETURNING nonce
"""
_IDENTITIES = "SELECT n, identity, first_id, made_by, reason, made_at FROM detent_identity ORDER BY n"
_NEW_IDENTITY = """
INSERT INTO detent_identity (n, identity, first_id, made_by, reason, made_at)
VALUES (?, lower(hex(randomblob(16))), ?, ?, ?, ?)
"""
_LOG_IDENTITY = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('database', 'identity', ?, ?, 'renew', ?, ?, ?)
"""


class SqliteEffects(SqliteEndings):
    """`effect_begin`, `identity_list` and `identity_renew`."""

    def effect_begin(self, job_id: int, attempt: int, evidence: EffectEvidence) -> EffectBegun | DetentError:
        now = self._now()
        job = self._may_commit(job_id, attempt, now)
        if isinstance(job, DetentError):
            return job
        begun = self._db.rows(_BEGIN, (max(now, job.last_at), evidence, job_id, attempt))
        self._expect(len(begun), 1, [job_id], "running")
        return EffectBegun(job_id, attempt, begun[0][0])

    def identity_list(self) -> list[IdentityRow]:
        return [
            IdentityRow(n=n, identity=identity, first_id=first, made_by=by, reason=why, made_at=from_micros(at))
            for n, identity, first, by, why, at in self._db.rows(_IDENTITIES)
        ]

    def identity_renew(self, actor: str, reason: str | None = None) -> IdentityRow:
        """Use up one id, so that each identity has its own first id."""
        now, known = self._now(), self.identity_list()
        first = self.ids_reserve(1) if known else 0
        self._db.change(_NEW_IDENTITY, (known[-1].n + 1 if known else 1, first, actor, reason, now))
        made = self.identity_list()[-1]
        was = known[-1].identity if known else None
        self._db.change(_LOG_IDENTITY, (was, made.identity, actor, reason, now))
        return made
