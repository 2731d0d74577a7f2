"""Waiting on SQLite: what has arrived, parking, and waking up.

differs: PostgreSQL leaves a wake request if it cannot lock a job at once. Here no other connection writes, so a wake-up
happens in the transaction that causes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from detent.errors import DetentError
from detent.model.clock import from_micros, to_micros
from detent.model.records import Abort
from detent.model.workflow_records import (
    NEVER,
    Arrived,
    CancelFound,
    NewStep,
    NewWait,
    Park,
    Parked,
    Pending,
    StepRecorded,
    WaitOn,
)
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import Job, micros
from detent.store.workflows.rules import arrived_again, choice_text, join_text, kind_of, time_in, time_text
from detent.store.workflows.sqlite_steps import Held, SqliteSteps

__all__ = ["SqliteWaits"]

_OLDEST_SIGNAL = """
SELECT s.seq, s.payload, s.sent_at
  FROM detent_workflow_unread u
 CROSS JOIN detent_workflow_signal s ON s.job_id = u.job_id AND s.name = u.name AND s.seq = u.seq
 WHERE u.job_id = ? AND u.name = ? ORDER BY u.seq LIMIT 1
"""
_GROUP = """
SELECT succeeded, failed, dead FROM detent_child_group
 WHERE parent_id = ?1 AND generation = ?2 AND path = ?3 AND closed
   AND succeeded + failed + CASE WHEN ?4 THEN 0 ELSE dead END = total
"""
_NO_WAITS = "DELETE FROM detent_workflow_wait WHERE job_id = ?"
_NEW_WAIT = """
INSERT INTO detent_workflow_wait (job_id, n, kind, name, settled, due_at, tenant) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_PARK = """
UPDATE detent_workflow
   SET parked_attempt = :attempt, parked_at = :at, parked_for = :parked_for,
       parks = CASE WHEN :progressed THEN 0 ELSE parks + 1 END
 WHERE job_id = :job_id
"""
_CONTINUE = """
UPDATE detent_workflow
   SET generation = generation + 1, payload = :payload, undoing_since = NULL, undo_cause = NULL,
       undone_by = NULL, seeds = NULL
 WHERE job_id = :job_id
"""
_IS_NEWS = """
SELECT 1 FROM detent_workflow w
 CROSS JOIN detent_workflow_step s ON s.job_id = w.job_id AND s.generation = w.generation AND s.path = :path
 WHERE w.job_id = :job_id AND s.attempt = :attempt AND s.kind NOT IN ('sleep', 'deadline', 'timeout')
"""
_PARKED = """
SELECT q.lane_id, max(?2, w.parked_at), q.job_id, q.holds_key, q.expires_at
  FROM detent_workflow w CROSS JOIN detent_job j ON j.id = w.job_id CROSS JOIN detent_waiting q ON q.job_id = w.job_id
 WHERE w.job_id = ?1 AND j.state = 'pending' AND j.ended = w.parked_attempt AND q.limit_key IS NULL
"""
_PARKED_FOR_SIGNAL = f"""{_PARKED}
   AND EXISTS (SELECT 1 FROM detent_workflow_wait x WHERE x.job_id = ?1 AND x.kind = 'signal' AND x.name = ?3)
"""
_TO_READY = "INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key, expires_at) VALUES (?, ?, ?, ?, ?)"
_NOT_WAITING = "DELETE FROM detent_waiting WHERE job_id = ?"
_DUE_NOW = "UPDATE detent_job SET due_at = ? WHERE id = ? AND state = 'pending'"
_REQUESTS = """
DELETE FROM detent_wake_request WHERE job_id IN (SELECT job_id FROM detent_wake_request ORDER BY job_id LIMIT ?)
RETURNING job_id
"""

_NEVER = to_micros(NEVER, field="until")


class _Arrival(NamedTuple):
    """What has ended a wait: its place in `on`, and the signal if it is one."""

    n: int
    on: WaitOn
    value: str
    seq: int | None
    sent_at: int = 0


class SqliteWaits(SqliteSteps):
    """`wait_look`, `workflow_park`, `workflow_continue` and `workflow_wake`."""

    def wait_look(self, items: Sequence[NewWait]) -> list[Arrived | Pending | DetentError]:
        now = self._now()
        held = self._held((item.job_id for item in items), now)
        return [self._look(item, held, now) for item in items]

    def _look(self, item: NewWait, held: dict[int, Held], now: int) -> Arrived | Pending | DetentError:
        holder = held.get(item.job_id)
        if holder is None or holder.attempt != item.attempt:
            return self._why_not(item.job_id, item.attempt, now)
        for recorded in self._record(item.steps, held, now) if item.steps else ():
            if isinstance(recorded, DetentError):
                return recorded
        if item.outcome is not None and (known := self._outcome(item.outcome)) is not None:
            return arrived_again(item.job_id, item.attempt, known.kind, known.value, known.done_at)
        found = self._arrival(item.job_id, held[item.job_id].generation or 1, item.on)
        if found is not None:
            return self._arrived(item, found, held, now)
        until = self._end_of(item, holder)
        # The time of a sleep is always on record; the end of another wait, if the wait lasts.
        if item.holds is not None and until is not None and (not item.on or until > holder.at):
            holds = replace(item.holds, value=time_text(from_micros(until)), error=None)
            (held_time,) = self._record([holds], held, now)
            if isinstance(held_time, DetentError):
                return held_time
            if held_time.value is not None:
                until = to_micros(time_in(held_time.value), field="until")
        if until is not None and until <= holder.at:
            return self._time_is_over(item, until, held, now)
        return Pending(item.job_id, item.attempt, None if until is None else from_micros(until))

    def _outcome(self, step: NewStep) -> StepRecorded | None:
        place = (step.job_id, step.generation, step.path)
        return self._recorded([place]).get(place)

    def _end_of(self, item: NewWait, holder: Held) -> int | None:
        if item.until is not None:
            return min(to_micros(item.until, field="until"), _NEVER)
        return None if item.lasts is None else min(holder.at + micros(item.lasts), _NEVER)

    def _arrival(self, job_id: int, generation: int, on: Sequence[WaitOn]) -> _Arrival | None:
        """Return the first of these that has arrived."""
        for n, one in enumerate(on):
            if one.kind == "signal":
                for seq, payload, sent_at in self._db.rows(_OLDEST_SIGNAL, (job_id, one.name)):
                    return _Arrival(n, one, payload, seq, sent_at)
            else:
                for counts in self._db.rows(_GROUP, (job_id, generation, one.name, int(one.settled))):
                    return _Arrival(n, one, join_text(*counts), None)
        return None

    def _arrived(
        self, item: NewWait, found: _Arrival, held: dict[int, Held], now: int
    ) -> Arrived | Pending | DetentError:
        kind, value = kind_of(found.on), found.value
        holder = held[item.job_id]
        held[item.job_id] = holder._replace(at=max(holder.at, found.sent_at))  # the clock may have been set back
        if item.outcome is None:
            return Arrived(item.job_id, item.attempt, found.n, kind, value, from_micros(held[item.job_id].at))
        if item.chooses:
            kind, value = "choice", choice_text(found.n, value)
        outcome = replace(item.outcome, kind=kind, value=value, error=None)
        signal = None if found.seq is None else (found.on.name, found.seq)
        (recorded,) = self._record([outcome], held, now, signal)
        if isinstance(recorded, DetentError):
            return recorded
        return Arrived(item.job_id, item.attempt, found.n, kind, value, recorded.done_at)

    def _time_is_over(self, item: NewWait, until: int, held: dict[int, Held], now: int) -> Arrived | DetentError:
        at = from_micros(held[item.job_id].at)
        if item.outcome is None:
            if item.on:
                return Arrived(item.job_id, item.attempt, None, "timeout", "null", at)
            return Arrived(item.job_id, item.attempt, None, "sleep", time_text(from_micros(until)), at)
        kind, value = kind_of(None), "null"
        if item.chooses:
            kind, value = "choice", choice_text(None, "null")
        (recorded,) = self._record([replace(item.outcome, kind=kind, value=value, error=None)], held, now)
        if isinstance(recorded, DetentError):
            return recorded
        return Arrived(item.job_id, item.attempt, None, kind, value, recorded.done_at)

    def workflow_park(self, items: Sequence[Park], worker: str) -> list[Parked | CancelFound | DetentError]:
        now = self._now()
        held = self._held((item.job_id for item in items), now)
        jobs = self._jobs(held)
        return [self._park(item, held, jobs, worker, now) for item in items]

    def _park(
        self, item: Park, held: dict[int, Held], jobs: dict[int, Job], worker: str, now: int
    ) -> Parked | CancelFound | DetentError:
        holder = held.get(item.job_id)
        if holder is None or holder.attempt != item.attempt:
            if self._ended_as(item.job_id, item.attempt, "parked"):
                return Parked(item.job_id, item.attempt)
            return self._why_not(item.job_id, item.attempt, now)
        if item.undoes and jobs[item.job_id].cancel_requested_at is not None:
            return CancelFound(item.job_id, item.attempt)
        holder = self._begun(holder, item.version, item.generation)
        arrived = self._arrival(item.job_id, holder.generation or 1, item.on) is not None
        until = _NEVER if item.until is None else min(to_micros(item.until, field="until"), _NEVER)
        due_at = holder.at if arrived else until
        news = self._has_news(jobs[item.job_id], item.news)
        if self._end_parked(jobs[item.job_id], item.begun_after, due_at, item.parked_for, news, worker, now):
            ends = (None if item.until is None else until, jobs[item.job_id].tenant)
            waits: list[Row] = [
                (item.job_id, n, one.kind, one.name, int(one.settled), *ends) for n, one in enumerate(item.on)
            ]
            self._db.change_many(_NEW_WAIT, waits or [(item.job_id, 0, "time", None, 0, *ends)])
        # If the same call names it again, it has ended.
        del held[item.job_id]
        return Parked(item.job_id, item.attempt)

    def workflow_continue(self, job_id: int, attempt: int, payload: str, worker: str) -> Parked | DetentError:
        now = self._now()
        holder = self._held([job_id], now).get(job_id)
        if holder is None or holder.attempt != attempt:
            if self._ended_as(job_id, attempt, "parked"):
                return Parked(job_id, attempt)
            return self._why_not(job_id, attempt, now)
        if holder.generation is None:
            self._begun(holder, 0, 1)
        job = self._jobs([job_id])[job_id]
        if self._end_parked(job, None, holder.at, "", self._has_news(job, ""), worker, now):
            self._db.change(_CONTINUE, {"job_id": job_id, "payload": payload})
        return Parked(job_id, attempt)

    def _has_news(self, job: Job, news: str | None) -> bool:
        """Return whether the attempt has recorded anything but times: one step is proof. All steps are looked through
        only if the caller does not know, or if that step is of an earlier attempt."""
        if news is None:
            return False
        step = {"job_id": job.id, "attempt": job.attempt, "path": news}
        return bool(self._db.rows(_IS_NEWS, step) or self._progressed([job.id]))

    def _end_parked(
        self, job: Job, begun_after: float | None, due_at: int, parked_for: str, news: bool, worker: str, now: int
    ) -> bool:
        """End an attempt whose function waits. Return whether the job is pending: a cancel may have been requested."""
        item = Abort(job_id=job.id, attempt=job.attempt, outcome="parked", begun_after=begun_after)
        end = self._end_as(job, item, worker, now, due_at=due_at, progressed={job.id} if news else set())
        self._db.change(_NO_WAITS, (job.id,))
        if end.outcome != "parked" or end.state != "pending":
            return False
        at = {"job_id": job.id, "attempt": job.attempt, "at": end.at, "parked_for": parked_for}
        self._db.change(_PARK, {**at, "progressed": int(news)})
        return True

    def workflow_wake(self, limit: int) -> int:
        now = self._now()
        requests = self._db.rows(_REQUESTS, (limit,))
        for (job_id,) in requests:
            self._wake_up(job_id, now)
        return len(requests)

    def _wake_up(self, job_id: int, now: int, signal: str | None = None) -> bool:
        """Make a parked job due now; with `signal`, if it waits for that. Return whether it was."""
        if signal is None:
            found = self._db.rows(_PARKED, (job_id, now))
        else:
            found = self._db.rows(_PARKED_FOR_SIGNAL, (job_id, now, signal))
        for row in found:
            self._db.change(_NOT_WAITING, (job_id,))
            self._db.change(_TO_READY, row)
            self._expect(self._db.change(_DUE_NOW, (row[1], job_id)), 1, [job_id], "pending")
        return bool(found)
