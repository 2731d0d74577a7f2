"""Effects whose end may go unheard: put on record before they begin, and settled by a person where nobody else can."""

from __future__ import annotations

from detent.errors import DetentError, NotFound, NotUnknown
from detent.model.clock import from_micros
from detent.model.records import EffectBegun, Moved, ToldBy
from detent.model.service_records import IdentityRow
from detent.store.sqlite.verbs.base import undeclared
from detent.store.sqlite.verbs.endings import EndingVerbs
from detent.store.sqlite.verbs.moves import MoveVerbs

__all__ = ["EffectVerbs"]

_BEGIN = """
UPDATE detent_job SET started_at = coalesce(started_at, ?), effect_told_by = ?
 WHERE id = ? AND attempt = ? AND state = 'running' AND committed_at IS NULL
RETURNING nonce
"""
_WHY_DEAD = "SELECT reason FROM detent_dead WHERE job_id = ?"
_DONE = """
UPDATE detent_job SET state = 'succeeded', finished_at = :now, committed_at = :now, result = :result, error = NULL
 WHERE id = :id AND attempt = :attempt AND state = 'quarantined'
"""
_NOT_DEAD = "DELETE FROM detent_dead WHERE job_id = ?"
_IDENTITIES = "SELECT n, identity, first_id, made_by, reason, made_at FROM detent_identity ORDER BY n"
_NEW_IDENTITY = """
INSERT INTO detent_identity (n, identity, first_id, made_by, reason, made_at)
VALUES (?, lower(hex(randomblob(16))), ?, ?, ?, ?)
"""
_LOG_IDENTITY = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('database', 'identity', ?, ?, 'renew', ?, ?, ?)
"""


class EffectVerbs(EndingVerbs, MoveVerbs):
    """`effect_begin`, `effect_settle`, `identity_list` and `identity_renew`."""

    def effect_begin(self, job_id: int, attempt: int, told_by: ToldBy) -> EffectBegun | DetentError:
        """Asked again, it answers the same again."""
        now = self._now()
        job = self._may_commit(job_id, attempt, now)
        if isinstance(job, DetentError):
            return job
        begun = self._db.rows(_BEGIN, (max(now, job.last_at), told_by, job_id, attempt))
        self._expect(len(begun), 1, [job_id], "running")
        return EffectBegun(job_id, attempt, begun[0][0])

    def effect_settle(
        self, job_id: int, done: bool, actor: str, reason: str, result: str | None = None
    ) -> Moved | DetentError:
        """A line of the trigger `settle`, and the move."""
        job = self._jobs([job_id]).get(job_id)
        to_state = "succeeded" if done else "pending"
        if job is None:
            return NotFound("job", str(job_id))
        if job.state == to_state:
            return Moved(str(job_id), to_state, False)
        if job.state != "quarantined":
            return undeclared(job, to_state)
        why = next((row[0] for row in self._db.rows(_WHY_DEAD, (job_id,))), None)
        if why != "unknown":
            return NotUnknown(job_id, why)
        now = self._now()
        if not done:
            self._bring_back(job, "settle", actor, reason, now)
            return Moved(str(job_id), to_state, True)
        at = self._log(job, to_state, "settle", actor, reason, now)
        moved = self._db.change(_DONE, {"id": job.id, "attempt": job.attempt, "now": at, "result": result})
        self._expect(moved, 1, [job.id], job.state)
        self._db.change(_NOT_DEAD, (job.id,))
        return Moved(str(job_id), to_state, True)

    def identity_list(self) -> list[IdentityRow]:
        """Oldest first."""
        return [
            IdentityRow(n=n, identity=identity, first_id=first, made_by=by, reason=why, made_at=from_micros(at))
            for n, identity, first, by, why, at in self._db.rows(_IDENTITIES)
        ]

    def identity_renew(self, actor: str, reason: str | None = None) -> IdentityRow:
        """It uses up one id, so that each identity has a first id of its own."""
        now, known = self._now(), self.identity_list()
        first = self.ids_reserve(1) if known else 0
        self._db.change(_NEW_IDENTITY, (known[-1].n + 1 if known else 1, first, actor, reason, now))
        made = self.identity_list()[-1]
        was = known[-1].identity if known else None
        self._db.change(_LOG_IDENTITY, (was, made.identity, actor, reason, now))
        return made
