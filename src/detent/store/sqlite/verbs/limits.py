"""Limits: how much room there is under each, and what uses it up."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from detent.errors import DetentError, NotFound
from detent.model.clock import from_micros
from detent.model.limit_records import LimitRow, NewLimit
from detent.model.records import Moved
from detent.store.sqlite.verbs.base import VerbBase, micros

__all__ = ["LimitVerbs", "Room"]

_PUT = """
INSERT INTO detent_rate_limit (key, rate, per, burst, concurrency_max, tokens, refilled_at)
VALUES (:key, :rate, :per, :burst, :concurrency_max, :tokens, :now)
ON CONFLICT (key) DO UPDATE
  SET rate = :rate, per = :per, burst = :burst, concurrency_max = :concurrency_max, tokens = :tokens,
      refilled_at = max(refilled_at, :now)
"""
_MEMBER = """
INSERT INTO detent_limit_member (kind, name, limit_key) VALUES (?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET limit_key = excluded.limit_key
"""
_RUNNING_ALREADY = """
INSERT INTO detent_limit_slot (limit_key, job_id, attempt)
SELECT :key, j.id, j.attempt
  FROM detent_lease l, json_each(l.job_ids) held
  JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
 WHERE j.task IN (SELECT value FROM json_each(:tasks)) OR j.queue IN (SELECT value FROM json_each(:queues))
ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt
"""
_MEMBERS = "SELECT kind, name, limit_key FROM detent_limit_member ORDER BY kind, name"
_LIMITS = """
SELECT key, rate, per, burst, concurrency_max, tokens, refilled_at, paused_until, throttled, open_until
  FROM detent_rate_limit ORDER BY key
"""
_LIMIT = _LIMITS.replace("ORDER BY key", "WHERE key = ?")
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
_CLOSE = """
UPDATE detent_rate_limit SET throttled = 0, throttled_at = NULL, open_until = NULL WHERE key = ? AND throttled_at <= ?
"""
_RUNNING = """
SELECT count(*) FROM detent_limit_slot s
  JOIN detent_job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running' WHERE s.limit_key = ?
"""
_TO_SLOTS = """
INSERT INTO detent_limit_slot (limit_key, job_id, attempt)
SELECT ?, j.id, j.attempt + 1 FROM json_each(?) asked JOIN detent_job j ON j.id = asked.value
 WHERE true
ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt
"""
_SPEND = "UPDATE detent_rate_limit SET tokens = ?, refilled_at = max(refilled_at, ?) WHERE key = ?"
_THROTTLED = """
UPDATE detent_rate_limit
   SET throttled = throttled + 1, throttled_at = max(coalesce(throttled_at, 0), :now),
       paused_until = max(coalesce(paused_until, 0), :until),
       open_until = CASE WHEN throttled >= 5 THEN max(coalesce(open_until, 0), :now + 60000000) ELSE open_until END
 WHERE key = :key
"""
_RESET = """
UPDATE detent_rate_limit
   SET paused_until = NULL, throttled = 0, throttled_at = NULL, open_until = NULL, tokens = burst,
       refilled_at = max(refilled_at, :now)
 WHERE key = :key
"""
_LOG_LIMIT = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('limit', ?, ?, 'closed', 'reset', ?, ?, ?)
"""


class _Limit(NamedTuple):
    key: str
    rate: float | None
    per: float
    burst: float
    concurrency_max: int | None
    tokens: float
    refilled_at: int
    paused_until: int | None
    throttled: int
    open_until: int | None

    def tokens_at(self, now: int) -> float:
        """How many may begin as far as the rate goes, with what is left of the next one."""
        return min(self.burst, self.tokens + (self.rate or 0) / self.per * (max(now - self.refilled_at, 0) / 1_000_000))


class Room:
    """How many jobs more may be claimed under each limit, and which limits a job is under."""

    def __init__(self, members: dict[tuple[str, str], str], room: dict[str, int]) -> None:
        self._members = members
        self._room = room
        self.spent: dict[str, list[int]] = {}

    def has_room(self, under: Collection[str]) -> bool:
        """Whether every one of these limits has."""
        return all(self._room[key] > 0 for key in under)

    def under(self, queue: str, task: str) -> frozenset[str]:
        """The limits on jobs of that queue and task."""
        found = (self._members.get(("task", task)), self._members.get(("queue", queue)))
        return frozenset(key for key in found if key in self._room)

    def spend(self, under: Iterable[str], job_id: int) -> None:
        """One less under each of these."""
        for key in under:
            self._room[key] -= 1
            self.spent.setdefault(key, []).append(job_id)


class LimitVerbs(VerbBase):
    """`limit_put`, `limit_list` and `limit_reset`, and what claims and ends ask of limits."""

    def limit_put(self, item: NewLimit) -> None:
        """What is left in the bucket stays, as far as the new one goes."""
        now = self._now()
        old = self._limit(item.key)
        tokens = item.burst if old is None or old.rate is None else min(old.tokens_at(now), item.burst)
        bounds = {name: getattr(item, name) for name in ("key", "rate", "per", "burst", "concurrency_max")}
        self._db.change(_PUT, bounds | {"tokens": tokens, "now": now})
        named = [("task", name, item.key) for name in item.tasks] + [("queue", name, item.key) for name in item.queues]
        self._db.change_many(_MEMBER, named)
        lists = {"tasks": json.dumps(item.tasks), "queues": json.dumps(item.queues)}
        self._db.change(_RUNNING_ALREADY, {"key": item.key, **lists})

    def limit_list(self) -> list[LimitRow]:
        """What runs is read out of the jobs."""
        now = self._now()
        members = self._db.rows(_MEMBERS)
        return [
            LimitRow(
                key=limit.key,
                rate=limit.rate,
                per=limit.per,
                burst=limit.burst,
                concurrency_max=limit.concurrency_max,
                tasks=tuple(name for kind, name, key in members if (kind, key) == ("task", limit.key)),
                queues=tuple(name for kind, name, key in members if (kind, key) == ("queue", limit.key)),
                tokens=limit.tokens_at(now),
                running=self._running(limit.key),
                paused_until=None if limit.paused_until is None else from_micros(limit.paused_until),
                throttled=limit.throttled,
                open_until=None if limit.open_until is None else from_micros(limit.open_until),
            )
            for limit in map(_Limit._make, self._db.rows(_LIMITS))
        ]

    def limit_reset(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record where there was a pause or an open breaker."""
        now = self._now()
        limit = self._limit(key)
        if limit is None:
            return NotFound("limit", key)
        found = "open" if limit.open_until is not None else "paused" if (limit.paused_until or 0) > now else None
        self._db.change(_RESET, {"key": key, "now": now})
        if found is not None:
            self._db.change(_LOG_LIMIT, (key, found, actor, reason, now))
        return Moved(key, "closed", found is not None)

    # -- for claims and ends -----------------------------------------------------------------------------------

    def _room(self, queues: Sequence[str] | None, tasks: Sequence[str], most: int) -> Room | None:
        """How much room a claim of these has; None where no limit is on any of them, as is usual."""
        members = {
            (kind, name): key
            for kind, name, key in self._db.rows(_MEMBERS)
            if (name in tasks if kind == "task" else queues is None or name in queues)
        }
        if not members:
            return None
        now = self._now()
        return Room(members, {key: self._room_under(key, most, now) for key in sorted(set(members.values()))})

    def _room_under(self, key: str, most: int, now: int) -> int:
        self._sweep(key)
        limit = self._limit(key)
        if limit is None:
            return most
        if max(limit.paused_until or 0, limit.open_until or 0) > now:
            return 0
        running = self._running(key)
        room = most
        if limit.concurrency_max is not None:
            room = min(room, limit.concurrency_max - running)
        if limit.open_until is not None:
            # Half open: one tries for all.
            room = min(room, 1 - running)
        if limit.rate is not None:
            # What rounding took from a whole token is not held against it.
            room = min(room, int(limit.tokens_at(now) + 1e-6))
        return max(room, 0)

    def _spend(self, room: Room) -> None:
        """What was claimed runs under its limits from now on; said before the jobs are changed."""
        now = self._now()
        for key, ids in room.spent.items():
            self._db.change(_TO_SLOTS, (key, json.dumps(ids)))
            limit = self._limit(key)
            if limit is not None and limit.rate is not None:
                self._db.change(_SPEND, (max(limit.tokens_at(now) - len(ids), 0.0), now, key))

    def _throttled(self, task: str, delay: float, now: int) -> None:
        """The other side said no to a job of this task, whose attempt has ended."""
        for kind, name, key in self._db.rows(_MEMBERS):
            if (kind, name) == ("task", task):
                self._sweep(key)
                self._db.change(_THROTTLED, {"key": key, "now": now, "until": now + micros(delay)})

    def _sweep(self, key: str) -> None:
        """Take away the slots that no longer count; a success since the last no closes the breaker."""
        if gone := self._db.rows(_SWEEP, (key,)):
            ((done,),) = self._db.rows(_DONE, (json.dumps(gone),))
            if done is not None:
                self._db.change(_CLOSE, (key, done))

    def _running(self, key: str) -> int:
        return int(self._db.rows(_RUNNING, (key,))[0][0])

    def _limit(self, key: str) -> _Limit | None:
        return next(map(_Limit._make, self._db.rows(_LIMIT, (key,))), None)
