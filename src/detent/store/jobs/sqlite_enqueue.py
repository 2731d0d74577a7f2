"""Enqueueing on SQLite: ids, jobs and their keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from detent.errors import DetentError, IdConflict, InvalidInput, KeyConflict
from detent.model.clock import to_micros
from detent.model.records import Enqueued, NewJob
from detent.model.uniform_jobs import UniformJobs, as_uniform, ids_of, representatives
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import Insert, VerbBase, ids_json, micros

__all__ = ["SqliteEnqueue"]

# Above all ids in use: a restored or damaged database may count from the beginning again.
_RESERVE = """
UPDATE detent_ids
   SET next = ? + max(next, 1 + coalesce((SELECT max(id) FROM detent_job), 0),
                      1 + coalesce((SELECT max(id) FROM detent_lease), 0))
RETURNING next
"""
_BEGIN_IDS = "INSERT INTO detent_ids (next) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM detent_ids)"
_KNOWN_ID = "SELECT id, task, payload, nonce FROM detent_job WHERE id = ?"
_KNOWN_IDS = """
SELECT j.id, j.task, j.payload, j.nonce FROM json_each(?) asked JOIN detent_job j ON j.id = asked.value
"""
_KNOWN_KEYS = """
SELECT k.tenant, k.key, k.job_id, k.fingerprint
  FROM json_each(?) asked
  JOIN detent_job_key k ON k.tenant = json_extract(asked.value, '$[0]') AND k.key = json_extract(asked.value, '$[1]')
 WHERE (k.expires_at IS NULL OR k.expires_at > ?)
   AND (substr(k.key, 1, 14) <> 'detent:active:'
        OR EXISTS (SELECT 1 FROM detent_job j WHERE j.id = k.job_id AND j.state IN ('pending', 'running')))
"""
_NEW_JOBS = Insert(
    "detent_job",
    "id, tenant, task, queue, priority, due_at, expires_at, payload, metadata, correlation_id, traceparent, run_id, "
    "nonce, created_at, attempts_max, dead_letter, idempotent, limit_key, cost, parent_id",
)
# A key that has expired counts as absent, and so does one of Detent's own for tasks that are unique while active, when
# its job is at rest or gone: its row is written over.
_NEW_KEY = """
INSERT INTO detent_job_key (tenant, key, job_id, fingerprint, expires_at, until_claim) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, key) DO UPDATE
  SET job_id = excluded.job_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at,
      until_claim = excluded.until_claim
"""
_NEW_SPAN = "INSERT INTO detent_job_span (created_at, block, first_id, last_id) VALUES (?, ?, ?, ?)"

_NOT_NEW = "DT002 job: it must begin once"
"""The guard's message for an id that is taken."""

Answer = Enqueued | DetentError


class SqliteEnqueue(VerbBase):
    """`ids_reserve` and `job_enqueue`."""

    def ids_reserve(self, count: int) -> int:
        if count < 0:
            raise InvalidInput("count", str(count), "zero or more")
        rows = self._db.rows(_RESERVE, (count,))
        if not rows:
            self._db.change(_BEGIN_IDS)
            rows = self._db.rows(_RESERVE, (count,))
        return int(rows[0][0]) - count

    def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        """Check all items before anything is inserted: a refusal refuses its group, and the rest is checked again as if
        the group had not been sent."""
        if not items:
            return []
        now = self._now()
        items = as_uniform(items)
        asked = ids_of(items)
        keyed = [(item.tenant, item.key) for item in representatives(items) if item.key is not None]
        if not keyed and self._are_new(items, now):
            return [Enqueued(job_id, True) for job_id in asked]
        items = list(items)
        ids = {row[0]: row[1:] for row in self._known(asked)}
        keys = {row[:2]: row[2:] for row in self._db.rows(_KNOWN_KEYS, (json.dumps(keyed), now))} if keyed else {}
        refused: dict[int, DetentError] = {}
        while True:
            answers = _judge(items, dict(ids), dict(keys), refused)
            fault = next(
                (n for n, said in enumerate(answers) if isinstance(said, DetentError) and n not in refused), None
            )
            if fault is None:
                break
            _refuse(items, fault, answers[fault], refused)
        created = [
            item for item, said in zip(items, answers, strict=True) if isinstance(said, Enqueued) and said.created
        ]
        self._accept(created, now)
        return answers

    def _are_new(self, items: Sequence[NewJob], now: int) -> bool:
        """Insert without looking first, since most jobs are new. Return False, with nothing written, if the guard of
        the table refuses one that is not."""
        try:
            if len(items) == 1:
                self._accept(items, now)
            else:
                self._accept_all(items, now)
        except Exception as error:  # of the driver, or of whatever is around it on a caller's connection
            if _NOT_NEW not in str(error):
                raise
            return False
        return True

    def _accept_all(self, items: Sequence[NewJob], now: int) -> None:
        """Insert with several statements under a savepoint: all or none."""
        self._db.change("SAVEPOINT all_new")
        try:
            self._accept(items, now)
        except BaseException:
            # Some errors take the whole transaction with them, and the savepoint.
            with suppress(Exception):
                self._db.change("ROLLBACK TO all_new")
                self._db.change("RELEASE all_new")
            raise
        self._db.change("RELEASE all_new")

    def _known(self, ids: Sequence[int]) -> list[Row]:
        return self._db.rows(_KNOWN_ID, ids) if len(ids) == 1 else self._db.rows(_KNOWN_IDS, (ids_json(ids),))

    def _accept(self, items: Sequence[NewJob], now: int) -> None:
        if not items:
            return
        items = as_uniform(items)
        if isinstance(items, UniformJobs):
            self._accept_alike(items, now)
            return
        jobs, lines, keys = [], [], []
        for item in items:
            due_at = now if item.due_at is None else max(now, to_micros(item.due_at, field="due_at"))
            expires_at = _moment(item.expires_at, "expires_at")
            jobs.append(
                (
                    *(item.id, item.tenant, item.task, item.queue, item.priority, due_at, expires_at, item.payload),
                    *(item.metadata, item.correlation_id, item.traceparent, item.run_id, item.nonce, now),
                    *(item.attempts_max, int(item.dead_letter), int(item.idempotent), item.limit_key, item.cost),
                    item.parent_id,
                )
            )
            lane = (item.queue, item.task, item.tenant, item.priority, item.limit_key or "", 0)
            lines.append((lane, due_at, item.id, int(item.unique_pending), expires_at))
            if item.key is not None:
                gone = None if item.key_ttl is None else now + micros(item.key_ttl)
                keys.append((item.tenant, item.key, item.id, item.fingerprint, gone, item.unique_pending))
        _NEW_JOBS.run(self._db, jobs)
        self._date([item.id for item in items], now)
        self._enter_queue(lines, now)
        if keys:
            self._db.change_many(_NEW_KEY, keys)

    def _accept_alike(self, items: UniformJobs, now: int) -> None:
        """Insert jobs that differ in id and payload only."""
        one = items.prototype
        due_at = now if one.due_at is None else max(now, to_micros(one.due_at, field="due_at"))
        expires_at = _moment(one.expires_at, "expires_at")
        same = {
            "tenant": one.tenant,
            "task": one.task,
            "queue": one.queue,
            "priority": one.priority,
            "due_at": due_at,
            "expires_at": expires_at,
            "metadata": one.metadata,
            "correlation_id": one.correlation_id,
            "traceparent": one.traceparent,
            "run_id": one.run_id,
            "nonce": one.nonce,
            "created_at": now,
            "attempts_max": one.attempts_max,
            "dead_letter": int(one.dead_letter),
            "idempotent": int(one.idempotent),
            "limit_key": one.limit_key,
            "cost": one.cost,
            "parent_id": one.parent_id,
        }
        _NEW_JOBS.run_alike(self._db, same, list(zip(items.ids, items.payloads, strict=True)), ("id", "payload"))
        self._date(items.ids, now)
        lane = (one.queue, one.task, one.tenant, one.priority, one.limit_key or "", 0)
        self._enter_queue_alike(lane, due_at, expires_at, [(job_id,) for job_id in items.ids], now)

    def _date(self, ids: Sequence[int], now: int) -> None:
        """Record when jobs were created, so that lists find them by time."""
        self._db.change_many(_NEW_SPAN, [(now, first >> 10, first, last) for first, last in _spans(ids)])


def _spans(ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last id in each block of 1,024 ids."""
    first, last = min(ids), max(ids)
    if last - first < len(ids):  # numbers in a row, as nearly always
        cuts = range((first >> 10) + 1 << 10, last + 1, 1 << 10)
        return list(zip([first, *cuts], [*(cut - 1 for cut in cuts), last], strict=True))
    spans: dict[int, tuple[int, int]] = {}
    for job_id in ids:
        low, high = spans.get(job_id >> 10, (job_id, job_id))
        spans[job_id >> 10] = min(low, job_id), max(high, job_id)
    return list(spans.values())


def _judge(
    items: Sequence[NewJob],
    ids: dict[int, tuple[str, str, int]],
    keys: dict[tuple[str, str], tuple[int, str]],
    refused: dict[int, DetentError],
) -> list[Answer]:
    """Return the answer to each item, in order: an id or a key seen earlier in the same call counts as taken."""
    answers: list[Answer] = []
    for n, item in enumerate(items):
        same = (item.task, item.payload, item.nonce)
        place = (item.tenant, item.key or "")
        if n in refused:
            answers.append(refused[n])
        elif item.id in ids:
            answers.append(Enqueued(item.id, False) if ids[item.id] == same else IdConflict(item.id))
        elif item.key is not None and place in keys:
            holder, fingerprint = keys[place]
            known = fingerprint == item.fingerprint
            answers.append(Enqueued(holder, False) if known else KeyConflict(item.key, item.tenant, holder))
        else:
            ids[item.id] = same
            if item.key is not None:
                keys[place] = (item.id, item.fingerprint)
            answers.append(Enqueued(item.id, True))
    return answers


def _refuse(items: Sequence[NewJob], fault: int, error: Answer, refused: dict[int, DetentError]) -> None:
    assert isinstance(error, DetentError)
    group = items[fault].group
    for n, item in enumerate(items):
        if n == fault or (group is not None and item.group == group):
            refused.setdefault(n, error)


def _moment(value: datetime | None, field: str) -> int | None:
    return None if value is None else to_micros(value, field=field)
