"""Limits on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence

from detent.errors import DetentError, InUse, NotFound
from detent.model.clock import from_micros
from detent.model.limit_records import Charge, Charged, ChildrenLimit, LimitFilter, LimitRow, NewLimit
from detent.model.records import Moved
from detent.model.service_records import LimitsPruned
from detent.store.limits.contract import ALL_LIMITS, LIMITS_MAX
from detent.store.limits.sqlite_claim_room import FIELDS, LIMIT, MEMBERS, SPEND, LimitState, SqliteLimitRoom
from detent.store.sqlite.verb_base import Job

__all__ = ["SqliteLimits"]

_NEW = f"""
INSERT INTO detent_rate_limit (key, {FIELDS}, tokens, refilled_at)
VALUES (:key, :rate, :per, :burst, :concurrency_max, :burst, :now)
ON CONFLICT (key) DO NOTHING
"""
_PUT = """
UPDATE detent_rate_limit
   SET rate = :rate, per = :per, burst = :burst, concurrency_max = :concurrency_max, tokens = :tokens,
       template = CASE WHEN key <> :template THEN template END, refilled_at = max(refilled_at, :now)
 WHERE key = :key
"""
_LOG_BOUNDS = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
VALUES ('limit', ?, ?, ?, ?, ?, ?, ?, ?)
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
_LIMITS = LIMIT.replace("key = ?", "key > :after ORDER BY key LIMIT :limit")
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
_SLOT = "SELECT cost FROM detent_limit_slot WHERE limit_key = ? AND job_id = ? AND attempt = ?"
_CHARGE = "UPDATE detent_limit_slot SET cost = ? WHERE limit_key = ? AND job_id = ?"
_KEY_OF_TASK = "SELECT limit_key FROM detent_limit_member WHERE kind = 'task' AND name = ?"
_RESET = """
UPDATE detent_rate_limit
   SET paused_until = NULL, held_at = NULL, throttled = 0, throttled_at = NULL, open_until = NULL, tokens = burst,
       refilled_at = max(refilled_at, :now)
 WHERE key = :key
"""
_NEEDING = f"""
WITH lanes AS (
  SELECT n.id FROM detent_lane n
   WHERE n.limit_key = :key
      OR EXISTS (SELECT 1 FROM detent_limit_member m WHERE m.limit_key = :key
                  AND (m.kind = 'task' AND m.name = n.task OR m.kind = 'queue' AND m.name = n.queue)))
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
# A key whose bucket is full and under which nothing runs holds nothing that its template does not.
_PRUNABLE = """
SELECT key, template IS NOT NULL, held_at IS NULL AND open_until IS NULL AND throttled = 0
            AND coalesce(paused_until <= :now, true)
            AND (rate IS NULL OR tokens + rate / per * (max(:now - refilled_at, 0) / 1000000.0) >= burst)
            AND NOT EXISTS (SELECT 1 FROM detent_limit_slot s
                              JOIN detent_job j ON j.id = s.job_id AND j.attempt = s.attempt AND j.state = 'running'
                             WHERE s.limit_key = l.key)
  FROM detent_rate_limit l WHERE key > :after ORDER BY key LIMIT :limit
"""
_OPEN_GROUP = """
SELECT 1 FROM detent_child_group
 WHERE parent_id = ? AND generation = ? AND path = ? AND NOT (closed AND succeeded + failed = total)
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


class SqliteLimits(SqliteLimitRoom):
    """The verbs of limits."""

    def limit_put(self, item: NewLimit, actor: str = "client", reason: str | None = None) -> None:
        """Tokens stay in the bucket, up to the new burst."""
        now = self._now()
        self._log_bounds(item, self._limit(item.key), actor, reason, now)
        bounds = {name: getattr(item, name) for name in ("rate", "per", "burst", "concurrency_max")} | {"now": now}
        self._db.change(_NEW, bounds | {"key": item.key})
        for (key,) in self._db.rows(_WITH_BOUNDS_OF, {"key": item.key}):
            old = self._limit(key)
            tokens = item.burst if old is None or old.rate is None else min(old.tokens_at(now), item.burst)
            self._db.change(_PUT, bounds | {"key": key, "template": item.key, "tokens": tokens})
        named = [("task", name, item.key) for name in item.tasks] + [("queue", name, item.key) for name in item.queues]
        self._db.change_many(_MEMBER, named)
        lists = {"tasks": json.dumps(item.tasks), "queues": json.dumps(item.queues)}
        self._make({key: item.key for (key,) in self._db.rows(_KEYS_RUNNING, {"tasks": lists["tasks"]})}, now)
        self._db.change(_RUNNING_ALREADY, {"key": item.key, **lists})

    def _log_bounds(self, item: NewLimit, was: LimitState | None, actor: str, reason: str | None, now: int) -> None:
        """Record a new limit, or one whose bounds change."""
        wanted = (item.rate, item.per, item.burst, item.concurrency_max)
        if was is not None and (was.rate, was.per, was.burst, was.concurrency_max) == wanted:
            return
        stands = "closed"
        if was is not None and was.held_at is not None:
            stands = "paused"
        elif was is not None and was.open_until is not None:
            stands = "half open"
        before, trigger = (None, "create") if was is None else (stands, "change")
        self._db.change(_LOG_BOUNDS, (item.key, before, stands, trigger, actor, reason, item.bounds_text, now))

    def limit_list(self, chosen: LimitFilter = ALL_LIMITS, after: str = "", limit: int = LIMITS_MAX) -> list[LimitRow]:
        now = self._now()
        lists = {name: json.dumps(getattr(chosen, name) or ()) for name in ("keys", "tasks", "queues")}
        found = self._db.rows(_LIMITS if chosen == ALL_LIMITS else _CHOSEN, {**lists, "after": after, "limit": limit})
        members: dict[str, list[tuple[str, str]]] = {}
        for kind, name, key in self._db.rows(MEMBERS):
            members.setdefault(key, []).append((kind, name))
        return [self._limit_row(one, members.get(one.key, ()), now) for one in map(LimitState._make, found)]

    def limit_refill(self, queues: Sequence[str] | None, tasks: Sequence[str]) -> float | None:
        names = {"tasks": json.dumps(list(tasks)), "queues": None if queues is None else json.dumps(list(queues))}
        ((seconds,),) = self._db.rows(_REFILL, names)
        return None if seconds is None else float(seconds)

    def limit_close(self, after: str, limit: int) -> str | None:
        now = self._now()
        looked = [key for (key,) in self._db.rows(_OPEN, (after, limit))]
        self._sweep(looked, now)
        return looked[-1] if looked and len(looked) == limit else None

    def _limit_row(self, limit: LimitState, members: Sequence[tuple[str, str]], now: int) -> LimitRow:
        return LimitRow(
            key=limit.key,
            rate=limit.rate,
            per=limit.per,
            burst=limit.burst,
            concurrency_max=limit.concurrency_max,
            tasks=tuple(name for kind, name in members if kind == "task"),
            queues=tuple(name for kind, name in members if kind == "queue"),
            tokens=limit.tokens_at(now),
            running=self._running([limit.key]).get(limit.key, 0),
            paused_until=None if limit.paused_until is None else from_micros(limit.paused_until),
            throttled=limit.throttled,
            open_until=None if limit.open_until is None else from_micros(limit.open_until),
            template=limit.template,
            held_at=None if limit.held_at is None else from_micros(limit.held_at),
        )

    def limit_pause(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        now = self._now()
        ((template,),) = self._db.rows(_TASKS_WITH_KEY, (key,))
        if template is not None:
            self._make({key: template}, now)
        limit = self._limit(key)
        if limit is None:
            return NotFound("limit", key)
        if limit.held_at is None:
            self._db.change(_HOLD, (now, key))
            stood = "closed" if limit.open_until is None else "half open"
            self._log_limit(key, stood, "paused", "pause", actor, reason, now)
        return Moved(key, "paused", limit.held_at is None)

    def limit_reset(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
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
        limit = self._limit(key)
        if limit is None:
            return NotFound("limit", key)
        ((needing,),) = self._db.rows(_NEEDING, {"key": key})
        if needing:
            return InUse("limit", key, needing)
        stood = "paused" if limit.held_at is not None else "closed"
        self._log_limit(key, stood, "removed", "remove", actor, reason, self._now())
        for statement in _REMOVE:
            self._db.change(statement, {"key": key})
        return Moved(key, "removed", True)

    def limit_charge(self, items: Sequence[Charge]) -> list[Charged | DetentError]:
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
        """Charge the limit of the job's task. Return the tokens left; None if it has no rate."""
        for (of_task,) in self._db.rows(_KEY_OF_TASK, (job.task,)):
            key = of_task if job.limit_key is None else job.limit_key
            limit = self._limit(key)
            for (took,) in self._db.rows(_SLOT, (key, job.id, job.attempt)):
                self._db.change(_CHARGE, (float(cost), key, job.id))
                if limit is not None and limit.rate is not None:
                    left = float(min(limit.burst, limit.tokens_at(now) + took - cost))
                    self._db.change(SPEND, (left, now, key))
                    return left
        return None

    def limit_prune(self, after: str, limit: int) -> LimitsPruned:
        self._sweep([key for (key,) in self._db.rows(_LEFT_OVER, (after, limit))], self._now())
        looked = self._db.rows(_PRUNABLE, {"now": self._now(), "after": after, "limit": limit})
        gone = [key for key, is_of_key, is_idle in looked if is_idle and (is_of_key or self._has_ended(key))]
        for statement in _LIMITS_GO:
            self._db.change(statement, (json.dumps(gone),))
        return LimitsPruned(len(gone), looked[-1][0] if looked and len(looked) == limit else None)

    def _has_ended(self, key: str) -> bool:
        """Whether this is the limit of a group of children that has ended, or is gone, for good."""
        group = ChildrenLimit.of_key(key)
        return group is not None and not self._db.rows(_OPEN_GROUP, (group.parent_id, group.generation, group.path))
