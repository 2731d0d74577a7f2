"""How attempts end: commit, finish, abort, and what the reaper and recovery make of those whose holder is gone.

An end is always two writes in one transaction: the row of the attempt, then the job's own row, which may leave running
only with `ended` raised to its attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from detent.errors import AlreadyCommitted, DetentError, InvalidInput, LeaseLost, NotFound
from detent.model.records import Abort, Aborted, Commit, Committed, Finish, Finished, Outcome, Reaped
from detent.store.sqlite.verbs.base import Job, micros
from detent.store.sqlite.verbs.enqueue import EnqueueVerbs

__all__ = ["EndingVerbs"]

_COMMIT = """
UPDATE detent_job SET started_at = coalesce(started_at, :now), committed_at = :now, result = coalesce(:result, result)
 WHERE id = :id AND attempt = :attempt AND state = 'running' AND committed_at IS NULL
   AND EXISTS (SELECT 1 FROM detent_lease l WHERE l.id = lease_id AND l.expires_at > :clock)
"""
_NEW_EXECUTION = """
INSERT INTO detent_execution
  (job_id, attempt, worker, leased_at, started_at, committed_at, done_at, aborted_at, outcome, error, next_state,
   next_due_at, counted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_END = """
UPDATE detent_job
   SET state = ?, ended = attempt, spared = ?, due_at = ?, started_at = ?, committed_at = ?, result = ?, error = ?,
       finished_at = ?
 WHERE id = ? AND attempt = ? AND state = 'running'
"""
_NEW_DEAD = "INSERT INTO detent_dead (job_id, tenant, queue, task, reason, quarantined_at) VALUES (?, ?, ?, ?, ?, ?)"
_ENDED = "SELECT outcome, next_state FROM detent_execution WHERE job_id = ? AND attempt = ?"
_EXPIRED = "SELECT id FROM detent_lease WHERE expires_at <= ? ORDER BY expires_at, id LIMIT ?"
_HELD = """
SELECT j.id FROM detent_lease l, json_each(l.job_ids) held
  JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
 WHERE l.id = ? AND l.expires_at <= ? ORDER BY j.id
"""
# Expiry is asked again by the statement that acts, and a lease that a running job names stays.
_LEASE_GOES = """
DELETE FROM detent_lease
 WHERE id = ? AND expires_at <= ?
   AND NOT EXISTS (SELECT 1 FROM json_each(job_ids) held
                     JOIN detent_job j ON j.id = held.value AND j.lease_id = detent_lease.id AND j.state = 'running')
"""

_MAY_BE_UNKNOWN = ("expired", "crashed", "timed_out")
_GIVEN_BACK = ("released", "snoozed", "throttled")
_NOT_THE_CALLERS = ("done", "expired")

Item = TypeVar("Item", Finish, Abort)
Answer = TypeVar("Answer")


class _End(NamedTuple):
    """An attempt as it ends, and what that makes of its job."""

    job: Job
    worker: str
    at: int
    outcome: Outcome
    error: str | None
    state: str
    due_at: int
    spared: int
    result: str | None
    dead_reason: str | None = None


class EndingVerbs(EnqueueVerbs):
    """`job_commit`, `job_finish`, `job_abort`, `lease_reap` and `job_recover`."""

    def job_commit(self, item: Commit) -> Committed | DetentError:
        """The intents, then the mark, which asks for the lease once more."""
        now = self._now()
        job = self._may_commit(item.job_id, item.attempt, now)
        if isinstance(job, DetentError):
            return job
        for answer in self.job_enqueue([replace(intent, group=0) for intent in item.intents]):
            if isinstance(answer, DetentError):
                return answer
        at = max(now, job.last_at)
        marked = {"id": job.id, "attempt": item.attempt, "now": at, "clock": now, "result": item.result}
        self._expect(self._db.change(_COMMIT, marked), 1, [job.id], "running")
        return Committed(item.job_id, item.attempt)

    def may_commit(self, job_id: int, attempt: int) -> DetentError | None:
        """Why this caller may not commit: somebody has, or it is not the holder. None where it may."""
        found = self._may_commit(job_id, attempt, self._now())
        return found if isinstance(found, DetentError) else None

    def _may_commit(self, job_id: int, attempt: int, now: int) -> Job | DetentError:
        job = self._jobs([job_id]).get(job_id)
        if job is not None and job.committed_at is not None:
            return AlreadyCommitted(job.id, job.attempt)
        lost = self._lost(job, job_id, attempt, now)
        if job is None or lost is not None:
            return lost or LeaseLost(job_id, attempt, "no such job")
        return job

    def job_finish(self, items: Sequence[Finish], worker: str) -> list[Finished | DetentError]:
        """By the holder, or by anyone where the attempt is committed; finishing again answers the same again."""

        def finish(item: Finish, job: Job | None, now: int, ends: list[_End]) -> Finished | DetentError:
            committed = _committed_by(job, item.attempt)
            lost = None if committed else self._lost(job, item.job_id, item.attempt, now)
            if job is None or lost is not None:
                if self._ended_as(item.job_id, item.attempt, "done"):
                    return Finished(item.job_id, item.attempt)
                return lost or LeaseLost(item.job_id, item.attempt, "no such job")
            ends.append(_succeeded(job, worker, item.result, now))
            return Finished(item.job_id, item.attempt)

        return self._each(items, finish)

    def job_abort(self, items: Sequence[Abort], worker: str) -> list[Aborted | DetentError]:
        """By the rules of the contract. Refuses outcomes that are not the caller's to give."""

        def abort(item: Abort, job: Job | None, now: int, ends: list[_End]) -> Aborted | DetentError:
            if item.outcome in _NOT_THE_CALLERS:
                return InvalidInput("outcome", item.outcome, "how an attempt failed; done and expired are the engine's")
            if _committed_by(job, item.attempt):
                return AlreadyCommitted(item.job_id, item.attempt)
            lost = self._lost(job, item.job_id, item.attempt, now)
            if job is None or lost is not None:
                if state := self._ended_as(item.job_id, item.attempt, item.outcome):
                    return Aborted(item.job_id, item.attempt, item.outcome, state)
                return lost or LeaseLost(item.job_id, item.attempt, "no such job")
            ends.append(end := _aborted(job, item, worker, now))
            return Aborted(item.job_id, item.attempt, end.outcome, end.state)

        return self._each(items, abort)

    def lease_reap(self, limit: int) -> Reaped:
        """Lease by lease, in the order of expiry."""
        now = self._now()
        gone, aborted, recovered = 0, [], []
        for (lease_id,) in self._db.rows(_EXPIRED, (now, limit)):
            ends = []
            for job in self._jobs(row[0] for row in self._db.rows(_HELD, (lease_id, now))).values():
                if job.committed_at is not None:
                    ends.append(_succeeded(job, job.lease_worker, None, now))
                    recovered.append(job.id)
                else:
                    expired = Abort(job_id=job.id, attempt=job.attempt, outcome="expired")
                    ends.append(_aborted(job, expired, job.lease_worker, now))
                    aborted.append(job.id)
            self._end(ends)
            gone += self._db.change(_LEASE_GOES, (lease_id, now))
        return Reaped(gone, tuple(aborted), tuple(recovered))

    def job_recover(self, ids: Sequence[int]) -> list[Finished | DetentError]:
        """A committed job belongs to nobody: anyone brings it to succeeded."""
        now = self._now()
        jobs = self._jobs(dict.fromkeys(ids))
        running = [job for job in jobs.values() if job.committed_at is not None and job.state == "running"]
        self._end([_succeeded(job, job.lease_worker, None, now) for job in running])
        answers: list[Finished | DetentError] = []
        for job_id in ids:
            job = jobs.get(job_id)
            if job is None:
                answers.append(NotFound("job", str(job_id)))
            elif job.committed_at is None:
                answers.append(LeaseLost(job_id, job.attempt, f"the job is {job.state}"))
            else:
                answers.append(Finished(job_id, job.attempt))
        return answers

    # -- one way to end ----------------------------------------------------------------------------------------

    def _each(
        self, items: Sequence[Item], judge: Callable[[Item, Job | None, int, list[_End]], Answer]
    ) -> list[Answer]:
        """Judge every item and write the ends together; a job named twice is judged again after its first end."""
        now = self._now()
        answers: dict[int, Answer] = {}
        for portion in _rounds(items):
            jobs = self._jobs(items[n].job_id for n in portion)
            ends: list[_End] = []
            for n in portion:
                answers[n] = judge(items[n], jobs.get(items[n].job_id), now, ends)
            self._end(ends)
        return [answers[n] for n in range(len(items))]

    def _ended_as(self, job_id: int, attempt: int, outcome: Outcome) -> str | None:
        """The state this attempt led to, where it has ended with this outcome."""
        return next((str(state) for found, state in self._db.rows(_ENDED, (job_id, attempt)) if found == outcome), None)

    def _end(self, ends: Sequence[_End]) -> None:
        """Write ends: the attempts' rows, the jobs', and where each job goes from here."""
        if not ends:
            return
        executions, jobs, pending, dead = [], [], [], []
        for job, worker, at, outcome, error, state, due_at, spared, result, reason in ends:
            done, back = outcome == "done", state == "pending"
            started_at = at if done and job.started_at is None else job.started_at
            committed_at = at if done and job.committed_at is None else job.committed_at
            executions.append(
                (
                    *(job.id, job.attempt, worker, job.leased_at, started_at, committed_at),
                    *((at, None) if done else (None, at)),
                    *(outcome, error, state, due_at if back else None, spared == job.spared),
                )
            )
            jobs.append(
                (
                    *(state, spared, due_at, started_at, committed_at, result),
                    *((None, None) if back else (error, at)),
                    *(job.id, job.attempt),
                )
            )
            if back:
                # Due or not is judged by the same moment as the end, whatever the clock says.
                pending.append(((job.lane, due_at, job.id, 0, job.expires_at), at))
            if state == "quarantined":
                dead.append((job.id, job.tenant, job.queue, job.task, reason, at))
        self._db.change_many(_NEW_EXECUTION, executions)
        self._expect(self._db.change_many(_END, jobs), len(jobs), [end.job.id for end in ends], "running")
        for line, at in pending:
            self._enter_queue([line], at)
        if dead:
            self._db.change_many(_NEW_DEAD, dead)


def _committed_by(job: Job | None, attempt: int) -> bool:
    return job is not None and job.state == "running" and job.attempt == attempt and job.committed_at is not None


def _succeeded(job: Job, worker: str, result: str | None, now: int) -> _End:
    result = job.result if result is None else result
    return _End(job, worker, max(now, job.last_at), "done", None, "succeeded", job.due_at, job.spared, result)


def _aborted(job: Job, item: Abort, worker: str, now: int) -> _End:
    """Rules 2 to 6 of the contract, the first that fits."""
    at = max(now, job.last_at)
    outcome, spared, reason = item.outcome, job.spared, None
    if outcome in _MAY_BE_UNKNOWN and not job.idempotent and job.started_at is not None:
        outcome, state, reason = "unknown", "quarantined", "unknown"
    elif outcome == "cancelled" or job.cancel_requested_at is not None:
        state = "cancelled"
    elif outcome in _GIVEN_BACK:
        state, spared = "pending", spared + 1
    elif item.fatal or job.attempt - job.spared >= job.attempts_max:
        state = "quarantined" if job.dead_letter else "failed"
        reason = "fatal" if item.fatal else "attempts used up"
    else:
        state = "pending"
    due_at = at + micros(item.delay) if state == "pending" else job.due_at
    return _End(job, worker, at, outcome, item.error, state, due_at, spared, job.result, reason)


def _rounds(items: Sequence[Finish] | Sequence[Abort]) -> Iterator[list[int]]:
    """The places of the items, in portions that name no job twice."""
    left = list(range(len(items)))
    while left:
        seen: dict[int, int] = {}
        for n in left:
            seen.setdefault(items[n].job_id, n)
        portion = list(seen.values())
        yield portion
        taken = set(portion)
        left = [n for n in left if n not in taken] if len(portion) < len(left) else []
