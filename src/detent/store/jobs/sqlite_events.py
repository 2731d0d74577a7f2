"""Events of jobs on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, NotFound
from detent.model.records import Appended, NewEvent
from detent.store.sqlite.verb_base import Job, VerbBase

__all__ = ["SqliteEvents"]

_LAST = "SELECT seq, at FROM detent_event WHERE job_id = ? ORDER BY seq DESC LIMIT 1"
_BY_KEY = "SELECT seq FROM detent_event WHERE job_id = ? AND key = ?"
# Events are in the order of time, so the search from the end stops at the first one before the window.
_WINDOW = """
SELECT attempt, level, message, payload, seq FROM detent_event
 WHERE job_id = :job AND key IS NULL
   AND seq > coalesce((SELECT seq FROM detent_event WHERE job_id = :job AND at <= :since ORDER BY seq DESC LIMIT 1), 0)
 ORDER BY seq DESC
"""
_APPEND = """
INSERT INTO detent_event (job_id, seq, attempt, level, message, payload, key, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""

_WINDOW_MICROS = 10_000_000

Line = tuple[int, str, str, str | None]


class _Tail:
    """The last event of a job, and its events of the last ten seconds if they were read."""

    __slots__ = ("at", "recent", "seq")

    def __init__(self, seq: int, at: int) -> None:
        self.seq = seq
        self.at = at
        self.recent: dict[Line, int] | None = None


class SqliteEvents(VerbBase):
    """`event_append`."""

    def event_append(self, items: Sequence[NewEvent]) -> list[Appended | DetentError]:
        """Append one by one: earlier events of the call count for the later ones."""
        now = self._now()
        jobs = self._jobs(dict.fromkeys(item.job_id for item in items))
        tails: dict[int, _Tail] = {}
        return [self._append(item, jobs, tails, now) for item in items]

    def _append(
        self, item: NewEvent, jobs: dict[int, Job], tails: dict[int, _Tail], now: int
    ) -> Appended | DetentError:
        job = jobs.get(item.job_id)
        if item.attempt is not None and (lost := self._lost(job, item.job_id, item.attempt, now)):
            return lost
        if job is None:
            return NotFound("job", str(item.job_id))
        if item.attempt is not None and job.started_at is None:
            self._start(job, now)
            at = max(now, job.last_at)
            job = jobs[job.id] = job._replace(started_at=at, last_at=at)
        tail = tails.get(job.id) or tails.setdefault(job.id, self._tail(job.id))
        attempt = job.attempt if item.attempt is None else item.attempt
        line = (attempt, item.level, item.message, item.payload)
        found = self._by_key(job.id, item.key) if item.key is not None else self._recent(job.id, tail, now).get(line)
        if found is not None:
            return Appended(job.id, found, False)
        tail.seq += 1
        tail.at = max(now, job.last_at, tail.at)
        self._db.change(_APPEND, (job.id, tail.seq, *line, item.key, tail.at))
        if item.key is None:
            self._recent(job.id, tail, now)[line] = tail.seq
        return Appended(job.id, tail.seq, True)

    def _tail(self, job_id: int) -> _Tail:
        return next((_Tail(seq, at) for seq, at in self._db.rows(_LAST, (job_id,))), _Tail(0, 0))

    def _by_key(self, job_id: int, key: str) -> int | None:
        return next((int(row[0]) for row in self._db.rows(_BY_KEY, (job_id, key))), None)

    def _recent(self, job_id: int, tail: _Tail, now: int) -> dict[Line, int]:
        if tail.recent is None:
            rows = self._db.rows(_WINDOW, {"job": job_id, "since": now - _WINDOW_MICROS})
            tail.recent = {row[:4]: row[4] for row in rows}
        return tail.recent
