"""What claims and endings ask of limits on SQLite: room, tokens and breakers."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from detent.store.limits.claim_room import Left, Room
from detent.store.sqlite.verb_base import Job, VerbBase, micros

__all__ = ["FIELDS", "LIMIT", "MEMBERS", "SPEND", "LimitState", "SqliteLimitRoom"]

log = logging.getLogger("detent.limits")

_IN_A_ROW = 5
"""Throttled attempts that a breaker bears."""
FIELDS = "rate, per, burst, concurrency_max"
_OF_KEY = f"""
INSERT INTO detent_rate_limit (key, {FIELDS}, tokens, refilled_at, template)
SELECT :key, {FIELDS}, burst, :now, key FROM detent_rate_limit WHERE key = :template
ON CONFLICT (key) DO NOTHING
"""
MEMBERS = "SELECT kind, name, limit_key FROM detent_limit_member ORDER BY kind, name"
LIMIT = """
SELECT key, rate, per, burst, concurrency_max, tokens, refilled_at, paused_until, throttled, throttled_at, open_until,
       template, held_at
  FROM detent_rate_limit WHERE key = ?
"""
_SWEEP = """
DELETE FROM detent_limit_slot
 WHERE limit_key = ? AND NOT EXISTS (
   SELECT 1 FROM detent_job j
    WHERE j.id = detent_limit_slot.job_id AND j.attempt = detent_limit_slot.attempt AND j.state = 'running')
RETURNING job_id, attempt
"""
_DONE = """
SELECT max(e.done_at)
  FROM json_each(?) gone
  JOIN detent_execution e
    ON e.job_id = json_extract(gone.value, '$[0]') AND e.attempt = json_extract(gone.value, '$[1]')
"""
_CLOSE = "UPDATE detent_rate_limit SET throttled = 0, throttled_at = NULL, open_until = NULL WHERE key = ?"
_RUNNING = """
SELECT count(*) FROM detent_limit_slot s
  JOIN detent_job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running' WHERE s.limit_key = ?
"""
_TO_SLOTS = """
INSERT INTO detent_limit_slot (limit_key, job_id, attempt, cost)
SELECT ?, j.id, j.attempt + 1, json_extract(asked.value, '$[1]')
  FROM json_each(?) asked JOIN detent_job j ON j.id = json_extract(asked.value, '$[0]')
 WHERE true
ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt, cost = excluded.cost
"""
SPEND = "UPDATE detent_rate_limit SET tokens = ?, refilled_at = max(refilled_at, ?) WHERE key = ?"
_THROTTLED = """
UPDATE detent_rate_limit
   SET throttled = throttled + 1, throttled_at = max(coalesce(throttled_at, 0), :now),
       paused_until = max(coalesce(paused_until, 0), :until),
       open_until = CASE WHEN throttled >= 5 THEN max(coalesce(open_until, 0), :now + 60000000) ELSE open_until END
 WHERE key = :key
"""
_LOG_LIMIT = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('limit', ?, ?, ?, ?, ?, ?, ?)
"""


class LimitState(NamedTuple):
    """A row of a limit."""

    key: str
    rate: float | None
    per: float
    burst: float
    concurrency_max: int | None
    tokens: float
    refilled_at: int
    paused_until: int | None
    throttled: int
    throttled_at: int | None
    open_until: int | None
    template: str | None
    held_at: int | None

    def tokens_at(self, now: int) -> float:
        """Return the tokens in the bucket, with fractions."""
        # A damaged rate or time refills nothing: it must not stop the claims of other jobs.
        rate = max(self.rate or 0.0, 0.0) / self.per if self.per > 0 else 0.0
        return min(self.burst, self.tokens + rate * (max(now - self.refilled_at, 0) / 1_000_000))


_CLOSED: dict[str, Any] = {
    "paused_until": None,
    "throttled": 0,
    "throttled_at": None,
    "open_until": None,
    "held_at": None,
}


class SqliteLimitRoom(VerbBase):
    """Room under limits, for claims and endings."""

    def _room(self, queues: Sequence[str] | None, tasks: Sequence[str], most: int) -> Room | None:
        """Return how much room a claim has; None if there is no limit on any of these, as is usual."""
        members = {
            (kind, name): key
            for kind, name, key in self._db.rows(MEMBERS)
            if (name in tasks if kind == "task" else queues is None or name in queues)
        }
        if not members:
            return None
        now = self._now()
        for key in sorted(set(members.values())):
            self._sweep(key, now)
        room = Room(members, lambda key: self._room_under(key, room.templates.get(key), most, now))
        return room

    def _room_under(self, key: str, template: str | None, most: int, now: int) -> Left:
        limit = self._limit(key)
        if limit is None and template is not None:
            # There was no claim under it yet: nothing runs, and its bucket is full.
            own = self._limit(template)
            limit = own and own._replace(key=key, tokens=own.burst, refilled_at=now, **_CLOSED)
        if limit is None:
            return Left(most)
        if limit.held_at is not None or max(limit.paused_until or 0, limit.open_until or 0) > now:
            return Left(0)
        room = most
        if limit.concurrency_max is not None:
            room = min(room, limit.concurrency_max - self._running(key))
        if limit.open_until is not None:
            # Half open: one attempt at a time.
            room = min(room, 1 - self._running(key))
        if limit.rate is not None:
            # Rounding must not cost a whole token.
            tokens = limit.tokens_at(now) + 1e-6
            return Left(min(room, int(tokens)), tokens, limit.burst)
        return Left(room)

    def _spend(self, room: Room) -> None:
        """Count what was claimed under its limits, before the jobs are changed."""
        now = self._now()
        for key, costs in room.spent.items():
            if key in room.templates:
                self._make(key, room.templates[key], now)
            self._sweep(key, now)
            self._db.change(_TO_SLOTS, (key, json.dumps(costs)))
            limit = self._limit(key)
            if limit is not None and limit.rate is not None:
                left = limit.tokens_at(now) - sum(cost for _, cost in costs)
                # Rounding must not leave a debt.
                self._db.change(SPEND, (max(left, 0.0) if left > -1e-5 else left, now, key))

    def _throttled(self, job: Job, delay: float, now: int) -> None:
        """Pause the limit of a job whose attempt was throttled, and open the breaker after several in a row."""
        for kind, name, of_task in self._db.rows(MEMBERS):
            if (kind, name) == ("task", job.task):
                key = of_task if job.limit_key is None else job.limit_key
                self._make(key, of_task, now)
                self._sweep(key, now)
                before = self._limit(key)
                self._db.change(_THROTTLED, {"key": key, "now": now, "until": now + micros(delay)})
                if before is not None and before.throttled >= _IN_A_ROW and before.open_until is None:
                    reason = f"{before.throttled + 1} attempts in a row were throttled"
                    self._log_limit(key, "closed", "open", "open", "system", reason, now)

    def _make(self, key: str, template: str, now: int) -> None:
        """Create the limit of a key with the bounds of its task's, unless it exists."""
        self._db.change(_OF_KEY, {"key": key, "template": template, "now": now})

    def _sweep(self, key: str, now: int) -> None:
        """Delete the slots of attempts that have ended. A success since the last throttling closes the breaker."""
        if gone := self._db.rows(_SWEEP, (key,)):
            ((done,),) = self._db.rows(_DONE, (json.dumps(gone),))
            limit = self._limit(key)
            if done is not None and limit is not None and (limit.throttled_at or now + 1) <= done:
                self._db.change(_CLOSE, (key,))
                if limit.open_until is not None:
                    self._log_limit(key, "open", "closed", "close", "system", "an attempt has succeeded", now)

    def _log_limit(self, key: str, was: str, to: str, trigger: str, actor: str, reason: str | None, now: int) -> None:
        """Record a change, and log it if a breaker opens or closes."""
        self._db.change(_LOG_LIMIT, (key, was, to, trigger, actor, reason, now))
        if to == "open":
            log.warning("the breaker of limit %r is open: %s", key, reason)
        elif was == "open":
            log.info("the breaker of limit %r is closed: %s", key, reason or f"by {actor}")

    def _running(self, key: str) -> int:
        return int(self._db.rows(_RUNNING, (key,))[0][0])

    def _limit(self, key: str) -> LimitState | None:
        return next(map(LimitState._make, self._db.rows(LIMIT, (key,))), None)
