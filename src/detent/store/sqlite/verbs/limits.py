"""Limits: how much room there is under each, and what uses it up."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from detent.errors import DetentError, InUse, NotFound
from detent.model.clock import from_micros
from detent.model.limit_records import Charge, Charged, LimitFilter, LimitRow, NewLimit
from detent.model.records import Moved
from detent.store.limiting import ALL_LIMITS, LIMITS_MAX
from detent.store.sqlite.verb_base import Job, VerbBase, micros
from detent.store.sqlite.verbs.room import Left, Room

__all__ = ["LimitVerbs"]

log = logging.getLogger("detent.limits")

_IN_A_ROW = 5
"""Throttled attempts that a breaker bears."""

_FIELDS = "rate, per, burst, concurrency_max"
_NEW = f"""
INSERT INTO detent_rate_limit (key, {_FIELDS}, tokens, refilled_at)
VALUES (:key, :rate, :per, :burst, :concurrency_max, :burst, :now)
ON CONFLICT (key) DO NOTHING
"""
_OF_KEY = f"""
INSERT INTO detent_rate_limit (key, {_FIELDS}, tokens, refilled_at, template)
SELECT :key, {_FIELDS}, burst, :now, key FROM detent_rate_limit WHERE key = :template
ON CONFLICT (key) DO NOTHING
"""
_PUT = """
UPDATE detent_rate_limit
   SET rate = :rate, per = :per, burst = :burst, concurrency_max = :concurrency_max, tokens = :tokens,
       template = CASE WHEN key <> :template THEN template END, refilled_at = max(refilled_at, :now)
 WHERE key = :key
"""
_WITH_BOUNDS_OF = "SELECT key FROM detent_rate_limit WHERE key = :key OR template = :key"
_MEMBER = """
INSERT INTO detent_limit_member (kind, name, limit_key) VALUES (?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET limit_key = excluded.limit_key
"""
_RUNNING_ALREADY = """
INSERT INTO detent_limit_slot (limit_key, job_id, attempt, cost)
SELECT CASE WHEN j.task IN (SELECT value FROM json_each(:tasks)) THEN coalesce(j.limit_key, :key) ELSE :key END,
       j.id, j.attempt, 0
  FROM detent_lease l, json_each(l.job_ids) held
  JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
 WHERE j.task IN (SELECT value FROM json_each(:tasks)) OR j.queue IN (SELECT value FROM json_each(:queues))
ON CONFLICT (limit_key, job_id) DO UPDATE SET attempt = excluded.attempt
"""
_KEYS_RUNNING = """
SELECT DISTINCT j.limit_key
  FROM detent_lease l, json_each(l.job_ids) held
  JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
 WHERE j.task IN (SELECT value FROM json_each(:tasks)) AND j.limit_key IS NOT NULL
"""
_MEMBERS = "SELECT kind, name, limit_key FROM detent_limit_member ORDER BY kind, name"
_LIMIT = """
SELECT key, rate, per, burst, concurrency_max, tokens, refilled_at, paused_until, throttled, throttled_at, open_until,
       template, held_at
  FROM detent_rate_limit WHERE key = ?
"""
_LIMITS = _LIMIT.replace("key = ?", "key > :after ORDER BY key LIMIT :limit")
_MEMBERS_OF = """
SELECT limit_key FROM detent_limit_member WHERE kind = 'task' AND name IN (SELECT value FROM json_each(:tasks))
UNION
SELECT limit_key FROM detent_limit_member WHERE kind = 'queue' AND {queue}
"""
_OF_QUEUES = "name IN (SELECT value FROM json_each(:queues))"
_CHOSEN = _LIMITS.replace(
    "WHERE",
    f"WHERE key IN (SELECT value FROM json_each(:keys) UNION {_MEMBERS_OF.format(queue=_OF_QUEUES)}) AND",
)
_REFILL = """
SELECT min(coalesce(burst * per / rate, 9e999)) FROM detent_rate_limit
 WHERE key IN ({})
""".format(_MEMBERS_OF.format(queue=f"(:queues IS NULL OR {_OF_QUEUES})"))
_OPEN = "SELECT key FROM detent_rate_limit WHERE open_until IS NOT NULL AND key > ? ORDER BY key LIMIT ?"
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
_SPEND = "UPDATE detent_rate_limit SET tokens = ?, refilled_at = max(refilled_at, ?) WHERE key = ?"
_SLOT = "SELECT cost FROM detent_limit_slot WHERE limit_key = ? AND job_id = ? AND attempt = ?"
_CHARGE = "UPDATE detent_limit_slot SET cost = ? WHERE limit_key = ? AND job_id = ?"
_KEY_OF_TASK = "SELECT limit_key FROM detent_limit_member WHERE kind = 'task' AND name = ?"
_THROTTLED = """
UPDATE detent_rate_limit
   SET throttled = throttled + 1, throttled_at = max(coalesce(throttled_at, 0), :now),
       paused_until = max(coalesce(paused_until, 0), :until),
       open_until = CASE WHEN throttled >= 5 THEN max(coalesce(open_until, 0), :now + 60000000) ELSE open_until END
 WHERE key = :key
"""
_RESET = """
UPDATE detent_rate_limit
   SET paused_until = NULL, held_at = NULL, throttled = 0, throttled_at = NULL, open_until = NULL, tokens = burst,
       refilled_at = max(refilled_at, :now)
 WHERE key = :key
"""
_NEEDING = f"""
WITH lanes AS (
  SELECT n.id FROM detent_lane n
   WHERE CASE WHEN :template IS NOT NULL THEN n.limit_key = :key
              ELSE EXISTS (SELECT 1 FROM detent_limit_member m WHERE m.limit_key = :key
                            AND (m.kind = 'task' AND m.name = n.task OR m.kind = 'queue' AND m.name = n.queue)) END)
SELECT (SELECT count(*) FROM lanes n JOIN detent_ready r ON r.lane_id = n.id)
     + (SELECT count(*) FROM detent_waiting w WHERE w.lane_id IN (SELECT id FROM lanes))
     + (SELECT count(DISTINCT s.job_id) FROM detent_limit_slot s
          JOIN detent_job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
         WHERE s.limit_key IN ({_WITH_BOUNDS_OF}))
"""
_REMOVE = (
    f"DELETE FROM detent_limit_slot WHERE limit_key IN ({_WITH_BOUNDS_OF})",
    "DELETE FROM detent_limit_member WHERE limit_key = :key",
    "DELETE FROM detent_rate_limit WHERE key = :key OR template = :key",
)
_HOLD = "UPDATE detent_rate_limit SET held_at = ? WHERE key = ?"
_TASKS_WITH_KEY = """
SELECT min(m.limit_key) FROM detent_lane l JOIN detent_limit_member m ON m.kind = 'task' AND m.name = l.task
 WHERE l.limit_key = ? AND l.limit_key <> ''
"""
_LOG_LIMIT = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('limit', ?, ?, ?, ?, ?, ?, ?)
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
    throttled_at: int | None
    open_until: int | None
    template: str | None
    held_at: int | None

    def tokens_at(self, now: int) -> float:
        """How many may begin as far as the rate goes, with what is left of the next one."""
        # A rate or time that a CHECK would refuse gives nothing back: it must not stop the claims of other jobs.
        rate = max(self.rate or 0.0, 0.0) / self.per if self.per > 0 else 0.0
        return min(self.burst, self.tokens + rate * (max(now - self.refilled_at, 0) / 1_000_000))


_CLOSED: dict[str, Any] = {
    "paused_until": None,
    "throttled": 0,
    "throttled_at": None,
    "open_until": None,
    "held_at": None,
}


class LimitVerbs(VerbBase):
    """`limit_put`, `limit_list`, `limit_refill`, `limit_close`, `limit_pause`, `limit_reset`, `limit_remove`,
    `limit_charge`; what claims and ends ask of limits."""

    def limit_put(self, item: NewLimit) -> None:
        """What is left in the bucket stays, as far as the new one goes."""
        now = self._now()
        bounds = {name: getattr(item, name) for name in ("rate", "per", "burst", "concurrency_max")} | {"now": now}
        self._db.change(_NEW, bounds | {"key": item.key})
        for (key,) in self._db.rows(_WITH_BOUNDS_OF, {"key": item.key}):
            old = self._limit(key)
            tokens = item.burst if old is None or old.rate is None else min(old.tokens_at(now), item.burst)
            self._db.change(_PUT, bounds | {"key": key, "template": item.key, "tokens": tokens})
        named = [("task", name, item.key) for name in item.tasks] + [("queue", name, item.key) for name in item.queues]
        self._db.change_many(_MEMBER, named)
        lists = {"tasks": json.dumps(item.tasks), "queues": json.dumps(item.queues)}
        for (key,) in self._db.rows(_KEYS_RUNNING, {"tasks": lists["tasks"]}):
            self._make(key, item.key, now)
        self._db.change(_RUNNING_ALREADY, {"key": item.key, **lists})

    def limit_list(self, chosen: LimitFilter = ALL_LIMITS, after: str = "", limit: int = LIMITS_MAX) -> list[LimitRow]:
        """What runs is read out of the jobs."""
        now = self._now()
        lists = {name: json.dumps(getattr(chosen, name) or ()) for name in ("keys", "tasks", "queues")}
        found = self._db.rows(_LIMITS if chosen == ALL_LIMITS else _CHOSEN, {**lists, "after": after, "limit": limit})
        members: dict[str, list[tuple[str, str]]] = {}
        for kind, name, key in self._db.rows(_MEMBERS):
            members.setdefault(key, []).append((kind, name))
        return [self._as_it_stands(one, members.get(one.key, ()), now) for one in map(_Limit._make, found)]

    def limit_refill(self, queues: Sequence[str] | None, tasks: Sequence[str]) -> float | None:
        """Two short lists of names lead to the limits."""
        names = {"tasks": json.dumps(list(tasks)), "queues": None if queues is None else json.dumps(list(queues))}
        ((seconds,),) = self._db.rows(_REFILL, names)
        return None if seconds is None else float(seconds)

    def limit_close(self, after: str, limit: int) -> str | None:
        """A walk along the open breakers."""
        now = self._now()
        looked = [key for (key,) in self._db.rows(_OPEN, (after, limit))]
        for key in looked:
            self._sweep(key, now)
        return looked[-1] if looked and len(looked) == limit else None

    def _as_it_stands(self, limit: _Limit, members: Sequence[tuple[str, str]], now: int) -> LimitRow:
        return LimitRow(
            key=limit.key,
            rate=limit.rate,
            per=limit.per,
            burst=limit.burst,
            concurrency_max=limit.concurrency_max,
            tasks=tuple(name for kind, name in members if kind == "task"),
            queues=tuple(name for kind, name in members if kind == "queue"),
            tokens=limit.tokens_at(now),
            running=self._running(limit.key),
            paused_until=None if limit.paused_until is None else from_micros(limit.paused_until),
            throttled=limit.throttled,
            open_until=None if limit.open_until is None else from_micros(limit.open_until),
            template=limit.template,
            held_at=None if limit.held_at is None else from_micros(limit.held_at),
        )

    def limit_pause(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """A key that jobs have is made a limit by that."""
        now = self._now()
        ((template,),) = self._db.rows(_TASKS_WITH_KEY, (key,))
        if template is not None:
            self._make(key, template, now)
        limit = self._limit(key)
        if limit is None:
            return NotFound("limit", key)
        if limit.held_at is None:
            self._db.change(_HOLD, (now, key))
            stood = "closed" if limit.open_until is None else "half open"
            self._log_limit(key, stood, "paused", "pause", actor, reason, now)
        return Moved(key, "paused", limit.held_at is None)

    def limit_reset(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record where there was a pause or an open breaker."""
        now = self._now()
        limit = self._limit(key)
        if limit is None:
            return NotFound("limit", key)
        paused = limit.held_at is not None or (limit.paused_until or 0) > now
        found = "open" if limit.open_until is not None else "paused" if paused else None
        self._db.change(_RESET, {"key": key, "now": now})
        if found is not None:
            self._log_limit(key, found, "closed", "reset", actor, reason, now)
        return Moved(key, "closed", found is not None)

    def limit_remove(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Who needs it is read out of the lanes and the jobs."""
        limit = self._limit(key)
        if limit is None:
            return NotFound("limit", key)
        ((needing,),) = self._db.rows(_NEEDING, {"key": key, "template": limit.template})
        if needing:
            return InUse("limit", key, needing)
        stood = "paused" if limit.held_at is not None else "closed"
        self._log_limit(key, stood, "removed", "remove", actor, reason, self._now())
        for statement in _REMOVE:
            self._db.change(statement, {"key": key})
        return Moved(key, "removed", True)

    def limit_charge(self, items: Sequence[Charge]) -> list[Charged | DetentError]:
        """The slot is of one attempt, so nothing is charged for another."""
        now = self._now()
        jobs = self._jobs(item.job_id for item in items)
        answers: list[Charged | DetentError] = []
        for item in items:
            job = jobs.get(item.job_id)
            lost = self._lost(job, item.job_id, item.attempt, now)
            left = None if job is None or lost is not None else self._charge(job, item.cost, now)
            answers.append(lost or Charged(item.job_id, item.attempt, left))
        return answers

    def _charge(self, job: Job, cost: float, now: int) -> float | None:
        """What is left then, where there is a rate."""
        for (of_task,) in self._db.rows(_KEY_OF_TASK, (job.task,)):
            key = of_task if job.limit_key is None else job.limit_key
            limit = self._limit(key)
            for (took,) in self._db.rows(_SLOT, (key, job.id, job.attempt)):
                self._db.change(_CHARGE, (float(cost), key, job.id))
                if limit is not None and limit.rate is not None:
                    left = float(min(limit.burst, limit.tokens_at(now) + took - cost))
                    self._db.change(_SPEND, (left, now, key))
                    return left
        return None

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
        for key in sorted(set(members.values())):
            self._sweep(key, now)
        room = Room(members, lambda key: self._room_under(key, room.templates.get(key), most, now))
        return room

    def _room_under(self, key: str, template: str | None, most: int, now: int) -> Left:
        limit = self._limit(key)
        if limit is None and template is not None:
            # Nobody has claimed under it yet: nothing runs, and its bucket is full.
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
            # Half open: one tries for all.
            room = min(room, 1 - self._running(key))
        if limit.rate is not None:
            # What rounding took from a whole token is not held against it.
            tokens = limit.tokens_at(now) + 1e-6
            return Left(min(room, int(tokens)), tokens, limit.burst)
        return Left(room)

    def _spend(self, room: Room) -> None:
        """What was claimed runs under its limits from now on; said before the jobs are changed."""
        now = self._now()
        for key, costs in room.spent.items():
            if key in room.templates:
                self._make(key, room.templates[key], now)
            self._sweep(key, now)
            self._db.change(_TO_SLOTS, (key, json.dumps(costs)))
            limit = self._limit(key)
            if limit is not None and limit.rate is not None:
                left = limit.tokens_at(now) - sum(cost for _, cost in costs)
                # What rounding took from a whole token is not owed.
                self._db.change(_SPEND, (max(left, 0.0) if left > -1e-5 else left, now, key))

    def _throttled(self, job: Job, delay: float, now: int) -> None:
        """The other side said no to this job, whose attempt has ended."""
        for kind, name, of_task in self._db.rows(_MEMBERS):
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
        """The limit of a key, with the bounds of its task's; there already, it stays as it is."""
        self._db.change(_OF_KEY, {"key": key, "template": template, "now": now})

    def _sweep(self, key: str, now: int) -> None:
        """Take away the slots that no longer count; a success since the last no closes the breaker."""
        if gone := self._db.rows(_SWEEP, (key,)):
            ((done,),) = self._db.rows(_DONE, (json.dumps(gone),))
            limit = self._limit(key)
            if done is not None and limit is not None and (limit.throttled_at or now + 1) <= done:
                self._db.change(_CLOSE, (key,))
                if limit.open_until is not None:
                    self._log_limit(key, "open", "closed", "close", "system", "an attempt has succeeded", now)

    def _log_limit(self, key: str, was: str, to: str, trigger: str, actor: str, reason: str | None, now: int) -> None:
        """On record, and a breaker's change is told at once."""
        self._db.change(_LOG_LIMIT, (key, was, to, trigger, actor, reason, now))
        if to == "open":
            log.warning("the breaker of limit %r is open: %s", key, reason)
        elif was == "open":
            log.info("the breaker of limit %r is closed: %s", key, reason or f"by {actor}")

    def _running(self, key: str) -> int:
        return int(self._db.rows(_RUNNING, (key,))[0][0])

    def _limit(self, key: str) -> _Limit | None:
        return next(map(_Limit._make, self._db.rows(_LIMIT, (key,))), None)
