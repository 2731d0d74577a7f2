"""What claims and endings ask of limits on SQLite: room, tokens and breakers."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from detent.store.limits.claim_room import Left, Room
from detent.store.sqlite.verb_base import Job, VerbBase, micros

__all__ = ["FIELDS", "LIMIT", "MEMBERS", "SPEND", "LimitState", "SqliteLimitRoom"]

log = logging.getLogger("detent.limits")

_IN_A_ROW = 5
"""Throttled attempts that a breaker bears."""
FIELDS = "rate, per, burst, concurrency_max"
# Keys with their templates, as an object.
_OF_KEYS = """
INSERT INTO detent_rate_limit (key, rate, per, burst, concurrency_max, tokens, refilled_at, template)
SELECT asked.key, l.rate, l.per, l.burst, l.concurrency_max, l.burst, :now, l.key
  FROM json_each(:keys) asked CROSS JOIN detent_rate_limit l ON l.key = asked.value
 WHERE true
ON CONFLICT (key) DO NOTHING
"""
MEMBERS = "SELECT kind, name, limit_key FROM detent_limit_member ORDER BY kind, name"
LIMIT = """
SELECT key, rate, per, burst, concurrency_max, tokens, refilled_at, paused_until, throttled, throttled_at, open_until,
       template, held_at
  FROM detent_rate_limit WHERE key = ?
"""
_LIMITS_OF = LIMIT.replace("key = ?", "key IN (SELECT value FROM json_each(?))")
_SWEEP = """
DELETE FROM detent_limit_slot
 WHERE limit_key IN (SELECT value FROM json_each(?)) AND NOT EXISTS (
   SELECT 1 FROM detent_job j
    WHERE j.id = detent_limit_slot.job_id AND j.attempt = detent_limit_slot.attempt AND j.state = 'running')
RETURNING limit_key, job_id, attempt
"""
# When the last of these attempts was done, of the limits that were throttled: for others it does not matter.
_DONE = """
SELECT l.key, l.open_until
  FROM json_each(?) gone
 CROSS JOIN detent_rate_limit l ON l.key = gone.value ->> 0 AND l.throttled_at IS NOT NULL
 CROSS JOIN detent_execution e ON e.job_id = gone.value ->> 1 AND e.attempt = gone.value ->> 2
 GROUP BY l.key HAVING max(e.done_at) >= l.throttled_at ORDER BY l.key
"""
_CLOSE = "UPDATE detent_rate_limit SET throttled = 0, throttled_at = NULL, open_until = NULL WHERE key = ?"
_RUNNING = """
SELECT s.limit_key, count(*)
  FROM json_each(?) asked
 CROSS JOIN detent_limit_slot s ON s.limit_key = asked.value
 CROSS JOIN detent_job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
 GROUP BY s.limit_key
"""
_TO_SLOTS = """
INSERT INTO detent_limit_slot (limit_key, job_id, attempt, cost)
SELECT asked.value ->> 0, j.id, j.attempt + 1, asked.value ->> 2
  FROM json_each(?) asked CROSS JOIN detent_job j ON j.id = asked.value ->> 1
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
        self._sweep(set(members.values()), now)
        return Room(members, lambda templates: self._rooms_under(templates, most, now))

    def _rooms_under(self, templates: Mapping[str, str | None], most: int, now: int) -> dict[str, Left]:
        """Return the room under each of these limits. A key without a claim so far has the bounds of its template."""
        found = {limit.key: limit for limit in self._limits({*templates, *templates.values()} - {None})}
        counted = [
            key
            for key, template in templates.items()
            if (limit := found.get(key) or found.get(template or "")) is not None
            and (limit.concurrency_max is not None or limit.open_until is not None)
        ]
        running = self._running(counted)
        rooms: dict[str, Left] = {}
        for key, template in templates.items():
            limit = found.get(key)
            if limit is None and (own := found.get(template or "")) is not None:
                # There was no claim under it yet: nothing runs, and its bucket is full.
                limit = own._replace(key=key, tokens=own.burst, refilled_at=now, **_CLOSED)
            rooms[key] = Left(most) if limit is None else self._room_under(limit, running.get(key, 0), most, now)
        return rooms

    def _room_under(self, limit: LimitState, running: int, most: int, now: int) -> Left:
        if limit.held_at is not None or max(limit.paused_until or 0, limit.open_until or 0) > now:
            return Left(0)
        room = most
        if limit.concurrency_max is not None:
            room = min(room, limit.concurrency_max - running)
        if limit.open_until is not None:
            # Half open: one attempt at a time.
            room = min(room, 1 - running)
        if limit.rate is not None:
            # Rounding must not cost a whole token.
            tokens = limit.tokens_at(now) + 1e-6
            return Left(min(room, int(tokens)), tokens, limit.burst)
        return Left(room)

    def _spend(self, room: Room) -> None:
        """Count what was claimed under its limits, before the jobs are changed."""
        if not room.spent:
            return
        now = self._now()
        self._make({key: room.templates[key] for key in room.spent if key in room.templates}, now)
        self._sweep(room.spent, now)
        slots = [(key, job_id, cost) for key, costs in room.spent.items() for job_id, cost in costs]
        self._db.change(_TO_SLOTS, (json.dumps(slots),))
        for limit in self._limits(room.spent):
            if limit.rate is not None:
                left = limit.tokens_at(now) - sum(cost for _, cost in room.spent[limit.key])
                # Rounding must not leave a debt.
                self._db.change(SPEND, (max(left, 0.0) if left > -1e-5 else left, now, limit.key))

    def _throttled(self, job: Job, delay: float, now: int) -> None:
        """Pause the limit of a job whose attempt was throttled, and open the breaker after several in a row."""
        for kind, name, of_task in self._db.rows(MEMBERS):
            if (kind, name) == ("task", job.task):
                key = of_task if job.limit_key is None else job.limit_key
                self._make({key: of_task}, now)
                self._sweep([key], now)
                before = self._limit(key)
                self._db.change(_THROTTLED, {"key": key, "now": now, "until": now + micros(delay)})
                if before is not None and before.throttled >= _IN_A_ROW and before.open_until is None:
                    reason = f"{before.throttled + 1} attempts in a row were throttled"
                    self._log_limit(key, "closed", "open", "open", "system", reason, now)

    def _make(self, templates: Mapping[str, str], now: int) -> None:
        """Create the limits of keys with the bounds of their tasks', unless they exist."""
        if templates:
            self._db.change(_OF_KEYS, {"keys": json.dumps(templates), "now": now})

    def _sweep(self, keys: Collection[str], now: int) -> None:
        """Delete the slots of attempts that have ended. A success since the last throttling closes the breaker."""
        if keys and (gone := self._db.rows(_SWEEP, (json.dumps(list(keys)),))):
            for key, open_until in self._db.rows(_DONE, (json.dumps(gone),)):
                self._db.change(_CLOSE, (key,))
                if open_until is not None:
                    self._log_limit(key, "open", "closed", "close", "system", "an attempt has succeeded", now)

    def _log_limit(self, key: str, was: str, to: str, trigger: str, actor: str, reason: str | None, now: int) -> None:
        """Record a change, and log it if a breaker opens or closes."""
        self._db.change(_LOG_LIMIT, (key, was, to, trigger, actor, reason, now))
        if to == "open":
            log.warning("the breaker of limit %r is open: %s", key, reason)
        elif was == "open":
            log.info("the breaker of limit %r is closed: %s", key, reason or f"by {actor}")

    def _running(self, keys: Collection[str]) -> dict[str, int]:
        """Return how many attempts run under each of these limits, if any do."""
        counts = self._db.rows(_RUNNING, (json.dumps(list(keys)),)) if keys else []
        return {str(key): int(count) for key, count in counts}

    def _limits(self, keys: Collection[str | None]) -> list[LimitState]:
        return [LimitState._make(row) for row in self._db.rows(_LIMITS_OF, (json.dumps(list(keys)),))]

    def _limit(self, key: str) -> LimitState | None:
        return next(map(LimitState._make, self._db.rows(LIMIT, (key,))), None)
