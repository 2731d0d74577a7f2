"""How attempts end on SQLite: commit, finish, abort, and the reaper for those whose holder is gone.

An end is always two writes in one transaction: the execution row, and the job row, which may leave running only with
`ended` raised to its attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from detent.errors import AlreadyCommitted, DetentError, InvalidInput, LeaseLost, NotFound
from detent.model.ops_records import OPS_TASK
from detent.model.records import Abort, Aborted, Commit, Committed, Finish, Finished, Outcome, Reaped
from detent.store.jobs.sqlite_ending_rules import End, UnfinishedUndo, abort, count_anew, give_back
from detent.store.jobs.sqlite_enqueue import SqliteEnqueue
from detent.store.limits.sqlite_claim_room import SqliteLimitRoom
from detent.store.sqlite.verb_base import Job, ids_json, micros

__all__ = ["HELD", "LEASE_GOES", "Holding", "SqliteEndings"]

_COMMIT = """
UPDATE detent_job SET started_at = coalesce(started_at, :now), committed_at = :now, result = coalesce(:result, result)
 WHERE id = :id AND attempt = :attempt AND state = 'running' AND committed_at IS NULL
   AND EXISTS (SELECT 1 FROM detent_lease l WHERE l.id = lease_id AND l.expires_at > :clock)
"""
_HOLDERS = """
SELECT j.id, j.attempt, l.expires_at
  FROM json_each(?) asked JOIN detent_job j ON j.id = asked.value JOIN detent_lease l ON l.id = j.lease_id
 WHERE j.state = 'running' AND j.committed_at IS NULL
   AND NOT EXISTS (SELECT 1 FROM detent_execution e WHERE e.job_id = j.id AND e.committed_at IS NOT NULL)
"""
# By the execution rows, because damage may have changed the job row.
_COMMITTED_BEFORE = """
SELECT job_id, attempt FROM detent_execution
 WHERE job_id IN (SELECT value FROM json_each(?)) AND committed_at IS NOT NULL
"""
# Success is the ordinary path, so one statement ends all jobs and checks that they are held. The time is never before
# any other time of the job; of commit, start and claim the first that is set is the latest.
_AT = "max(:now, coalesce(committed_at, started_at, leased_at), coalesce(cancel_requested_at, 0))"
_SUCCEEDED = f"""
   SET state = 'succeeded', ended = attempt, finished_at = {_AT}, error = NULL,
       committed_at = coalesce(committed_at, {_AT})"""
# `{begun}` is the number of microseconds from the claim to the call of the function.
_STARTED = f"started_at = max(leased_at, min(coalesce(started_at, {_AT}), leased_at + {{begun}}))"
# For many blocks at once. Each has checked its lease when it ended; `clock` is when the first of them started.
_COMMIT_MANY = f"""
UPDATE detent_job SET started_at = coalesce(started_at, {_AT}), committed_at = {_AT}
 WHERE id IN (SELECT value FROM json_each(:ids)) AND attempt = :attempt AND state = 'running' AND committed_at IS NULL
   AND (SELECT l.expires_at FROM detent_lease l WHERE l.id = lease_id) > :clock
"""
_HELD_OR_COMMITTED = """
   AND state = 'running' AND attempt = coalesce(:attempt, attempt)
   AND (committed_at IS NOT NULL OR (SELECT l.expires_at FROM detent_lease l WHERE l.id = lease_id) > :now)"""
_WHICH = " RETURNING id"
_SUCCEED = f"""
UPDATE detent_job {_SUCCEEDED}, started_at = coalesce(started_at, {_AT})
 WHERE id IN (SELECT value FROM json_each(:ids)) {_HELD_OR_COMMITTED}
"""
_SUCCEED_BEGUN = f"""
UPDATE detent_job {_SUCCEEDED}, {_STARTED.format(begun="own.value")}
  FROM json_each(:told) own WHERE detent_job.id = CAST(own.key AS INTEGER) {_HELD_OR_COMMITTED}
"""
# Both in one text, `begun:result`: CAST reads the number up to the colon. An array would be parsed twice per job.
_SUCCEED_WITH_RESULTS = f"""
UPDATE detent_job {_SUCCEEDED}, {_STARTED.format(begun="CAST(own.value AS INTEGER)")},
       result = coalesce(nullif(substr(own.value, instr(own.value, ':') + 1), ''), result)
  FROM json_each(:told) own WHERE detent_job.id = CAST(own.key AS INTEGER) {_HELD_OR_COMMITTED}
"""
_DONE = """
INSERT INTO detent_execution
  (job_id, attempt, worker, leased_at, started_at, committed_at, done_at, outcome, next_state, counted)
SELECT j.id, attempt, coalesce(:worker, (SELECT worker FROM detent_lease l WHERE l.id = lease_id), ''), leased_at,
       started_at, committed_at, finished_at, 'done', 'succeeded', 1
  FROM json_each(:ids) asked JOIN detent_job j ON j.id = asked.value
"""
_COUNTED = "INSERT INTO detent_succeeded_batch (job_ids) VALUES (?)"
_ABORTED = """
INSERT INTO detent_execution
  (job_id, attempt, worker, leased_at, started_at, aborted_at, outcome, error, next_state, next_due_at, counted,
   suspect)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_END = """
UPDATE detent_job
   SET state = ?, ended = attempt, spared = ?, due_at = ?, error = ?, finished_at = ?, expires_at = ?, started_at = ?
 WHERE id = ? AND attempt = ? AND state = 'running'
"""
_NEW_DEAD = "INSERT INTO detent_dead (job_id, tenant, queue, task, reason, quarantined_at) VALUES (?, ?, ?, ?, ?, ?)"
_NEW_UNTOLD = """
INSERT INTO detent_failure_report (job_id, attempt, task) VALUES (?, ?, ?) ON CONFLICT (job_id, attempt) DO NOTHING
"""
_ENDED = "SELECT outcome, next_state FROM detent_execution WHERE job_id = ? AND attempt = ?"
_SPARED_AS_EXPIRED = """
SELECT job_id, count(*) FROM detent_execution INDEXED BY detent_execution_unlucky
 WHERE job_id IN (SELECT value FROM json_each(?)) AND outcome = 'expired' AND NOT counted GROUP BY job_id
"""
# Steps are being undone, and not all of them are; of the workflow itself, or of another job.
_UNDO_UNFINISHED = """
SELECT w.job_id, CASE WHEN w.undo_of IS NULL THEN 'own' ELSE 'other' END
  FROM json_each(?) asked CROSS JOIN detent_workflow w ON w.job_id = asked.value
 WHERE w.undoing_since IS NOT NULL AND NOT EXISTS (
   SELECT 1 FROM detent_workflow_step s
    WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.path = '~undone')
"""
# Times are no progress.
_PROGRESSED = """
SELECT w.job_id
  FROM json_each(?) asked CROSS JOIN detent_workflow w ON w.job_id = asked.value
 CROSS JOIN detent_job j ON j.id = w.job_id
 WHERE EXISTS (SELECT 1 FROM detent_workflow_step s
                WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.attempt = j.attempt
                  AND s.kind NOT IN ('sleep', 'deadline', 'timeout', 'token'))
"""
_EXPIRED = """
SELECT id FROM detent_lease
 WHERE expires_at <= ? AND NOT (expires_at > ? AND expires_at <= ?) ORDER BY expires_at, id LIMIT ?
"""
_EXPIRED_OF_TASK = """
SELECT id FROM detent_lease l
 WHERE expires_at <= ?
   AND EXISTS (SELECT 1 FROM json_each(l.job_ids) held JOIN detent_job j ON j.id = held.value WHERE j.task = ?)
 ORDER BY expires_at, id LIMIT ?
"""
HELD = """
SELECT j.id FROM detent_lease l, json_each(l.job_ids) held
  JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
 WHERE l.id = ? AND l.expires_at <= ? ORDER BY j.id
"""
# The statement that acts checks the expiry again, and a lease that a running job names stays.
LEASE_GOES = """
DELETE FROM detent_lease
 WHERE id = ? AND expires_at <= ?
   AND NOT EXISTS (SELECT 1 FROM json_each(job_ids) held
                     JOIN detent_job j ON j.id = held.value AND j.lease_id = detent_lease.id AND j.state = 'running')
"""

_WATCHED = "SELECT watched_at, gap_from, gap_to FROM detent_watch"
_GAP_MIN = micros(5)

_NOT_THE_CALLERS = ("done", "expired", "parked")
_EXPIRED_FREE_MAX = 5
"""Maximum number of expired attempts of a job that do not count, by rule 4 of the contract."""


_NOT_KNOWN = 10**15
"""More microseconds than any attempt lasts: an attempt without a known start has started when it ends."""
_Asked = Mapping[int, Finish | None]
"""By job; None if only its commit is known."""


class Holding(NamedTuple):
    """An attempt that may commit: when that was checked, and when its lease expires."""

    job_id: int
    attempt: int
    at: int
    expires_at: int

    @property
    def seconds(self) -> float:
        """For how many seconds the lease lasted when that was read."""
        return (self.expires_at - self.at) / 1_000_000


class SqliteEndings(SqliteEnqueue, SqliteLimitRoom):
    """`job_commit`, `job_finish`, `job_abort`, `lease_reap` and `job_recover`."""

    def job_commit(self, item: Commit) -> Committed | DetentError:
        """Enqueue the intents, then set the mark, which checks the lease again."""
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

    def holders(self, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return attempt and end of lease of those of these jobs that run and are not committed."""
        return {
            job_id: (attempt, expires_at) for job_id, attempt, expires_at in self._db.rows(_HOLDERS, (ids_json(ids),))
        }

    def may_commit(self, job_id: int, attempt: int, found: tuple[int, int] | None) -> Holding | DetentError:
        """Return until when this caller holds the job, from what `holders` returned in this transaction; else the error
        that says why it may not commit."""
        now = self._now()
        if found is not None and found[0] == attempt and found[1] > now:
            return Holding(job_id, attempt, now, found[1])
        why = self._may_commit(job_id, attempt, now)
        return why if isinstance(why, DetentError) else LeaseLost(job_id, attempt, "it has no lease")

    def still_holds(self, holding: Holding) -> LeaseLost | None:
        """Check the lease again in the same transaction: only time can have ended it."""
        if holding.expires_at > self._now():
            return None
        return LeaseLost(holding.job_id, holding.attempt, "its lease has expired")

    def mark_committed(self, holdings: Sequence[Holding]) -> None:
        """Mark the attempts whose blocks have ended, with one statement per attempt number."""
        values = {"now": self._now(), "clock": min(one.at for one in holdings)}
        asked: dict[int, list[int]] = {}
        for one in holdings:
            asked.setdefault(one.attempt, []).append(one.job_id)
        for attempt, ids in asked.items():
            marked = self._db.change(_COMMIT_MANY, {**values, "ids": ids_json(ids), "attempt": attempt})
            self._expect(marked, len(ids), ids, "running")

    def _may_commit(self, job_id: int, attempt: int, now: int) -> Job | DetentError:
        job = self._jobs([job_id]).get(job_id)
        if job is not None and job.committed_at is not None:
            return AlreadyCommitted(job.id, job.attempt)
        for _, before in self._db.rows(_COMMITTED_BEFORE, (ids_json([job_id]),)):
            return AlreadyCommitted(job_id, before)
        lost = self._lost(job, job_id, attempt, now)
        if job is None or lost is not None:
            return lost or LeaseLost(job_id, attempt, "no such job")
        return job

    def job_finish(self, items: Sequence[Finish], worker: str) -> list[Finished | DetentError]:
        now = self._now()
        asked: dict[int, dict[int, Finish | None]] = {}
        for item in items:
            asked.setdefault(item.attempt, {}).setdefault(item.job_id, item)
        done = {attempt: self._succeed(results, attempt, worker, now) for attempt, results in asked.items()}
        answers: list[Finished | DetentError] = [Finished(item.job_id, item.attempt) for item in items]
        if left := [n for n, item in enumerate(items) if item.job_id not in done[item.attempt]]:
            jobs = self._jobs(dict.fromkeys(items[n].job_id for n in left))
            for n in left:
                job_id, attempt = items[n].job_id, items[n].attempt
                lost = self._lost(jobs.get(job_id), job_id, attempt, now)
                if lost is not None and not self._ended_as(job_id, attempt, "done"):
                    answers[n] = lost
        return answers

    def job_abort(self, items: Sequence[Abort], worker: str) -> list[Aborted | DetentError]:
        now = self._now()
        jobs = self._jobs(dict.fromkeys(item.job_id for item in items))
        return [self._abort(item, jobs, worker, now) for item in items]

    def _abort(self, item: Abort, jobs: dict[int, Job], worker: str, now: int) -> Aborted | DetentError:
        if item.outcome in _NOT_THE_CALLERS:
            return InvalidInput(
                "outcome", item.outcome, "how an attempt failed; done, expired and parked are the engine's"
            )
        job = jobs.get(item.job_id)
        if _committed_by(job, item.attempt):
            return AlreadyCommitted(item.job_id, item.attempt)
        lost = self._lost(job, item.job_id, item.attempt, now)
        if job is None or lost is not None:
            if state := self._ended_as(item.job_id, item.attempt, item.outcome):
                return Aborted(item.job_id, item.attempt, item.outcome, state)
            return lost or LeaseLost(item.job_id, item.attempt, "no such job")
        end = self._end_as(job, item, worker, now)
        if item.outcome == "throttled":
            self._throttled(job, item.delay, now)
        # If the same call names it again, it has ended.
        jobs[job.id] = job._replace(state=end.state)
        return Aborted(item.job_id, item.attempt, end.outcome, end.state)

    def _end_as(
        self,
        job: Job,
        item: Abort,
        worker: str,
        now: int,
        *,
        due_at: int | None = None,
        progressed: set[int] | None = None,
    ) -> End:
        """End an attempt by the rules, without checking who asks. A parked job is due at `due_at`. `progressed` is the
        answer of `_progressed`, if it is known."""
        is_committed = bool(self._db.rows(_COMMITTED_BEFORE, (ids_json([job.id]),)))
        if progressed is None:
            progressed = self._progressed([job.id])
        if job.id in progressed:
            job = count_anew(job)
        unfinished = self._undo_unfinished([job], fatal=item.fatal).get(job.id)
        undo = UnfinishedUndo(unfinished, job.id in progressed, self._still_undoes(job, item.outcome))
        end = give_back(job, item, worker, now) if is_committed else abort(job, item, worker, now, undo)
        if due_at is not None and end.outcome == "parked" and end.state == "pending":
            end = end._replace(due_at=max(due_at, end.at), expires_at=None)
        self._end([end])
        return end

    def _progressed(self, ids: Iterable[int]) -> set[int]:
        """Return those of these jobs that are workflows whose running attempt has recorded anything but times."""
        return {job_id for (job_id,) in self._db.rows(_PROGRESSED, (ids_json(ids),))}

    def _undo_unfinished(self, jobs: Sequence[Job], *, fatal: bool = False) -> dict[int, str]:
        """Return those of these jobs that are undoing steps, `own` or `other`, and have not finished. It is asked only
        where it matters: a cancel was requested, or there is no further attempt."""
        asked = [
            job.id
            for job in jobs
            if fatal or job.cancel_requested_at is not None or job.attempt - job.spared >= job.attempts_max
        ]
        return dict(self._db.rows(_UNDO_UNFINISHED, (ids_json(asked),))) if asked else {}

    def _still_undoes(self, job: Job, outcome: Outcome) -> bool:
        """Return whether a cancel was requested that has to wait until the steps of a workflow are undone."""
        return job.cancel_requested_at is not None and bool(self._undo_is_open(job.id, outcome))

    def lease_reap(self, limit: int, grace: float | None = None) -> Reaped:
        return self._reap(limit, None, grace)

    def _reap(self, limit: int, task: str | None, grace: float | None = None) -> Reaped:
        """Reap leases with jobs of that task; None is any."""
        now = self._now()
        gone = 0
        aborted: list[int] = []
        recovered: list[int] = []
        leases = (
            (_EXPIRED, (now, *self._unwatched(now, grace), limit))
            if task is None
            else (_EXPIRED_OF_TASK, (now, task, limit))
        )
        for (lease_id,) in self._db.rows(*leases):
            jobs = self._jobs(row[0] for row in self._db.rows(HELD, (lease_id, now))).values()
            committed = [job.id for job in jobs if job.committed_at is not None]
            expired = [job for job in jobs if job.committed_at is None]
            self._succeed(dict.fromkeys(committed), None, None, now)
            self._end_as_expired(expired, now)
            recovered += committed
            aborted += [job.id for job in expired]
            gone += self._db.change(LEASE_GOES, (lease_id, now))
        return Reaped(gone, tuple(aborted), tuple(recovered))

    def _unwatched(self, now: int, grace: float | None) -> tuple[int, int]:
        """Return the last period without a worker's heartbeat, if it ended less than `grace` seconds ago; else an empty
        one. A period that lasts until now, and was not recorded yet, ends now."""
        ((watched_at, gap_from, gap_to),) = self._db.rows(_WATCHED)
        if watched_at is not None and watched_at < now - _GAP_MIN:
            gap_from, gap_to = watched_at, now
        if grace is None or gap_to is None or gap_to <= now - micros(grace):
            return 0, 0
        return gap_from, gap_to

    def _end_as_expired(self, jobs: Sequence[Job], now: int) -> None:
        """End the attempts of these jobs, whose lease has expired."""
        spared: dict[int, int] = dict(self._db.rows(_SPARED_AS_EXPIRED, (ids_json(job.id for job in jobs),)))
        committed: dict[int, int] = dict(self._db.rows(_COMMITTED_BEFORE, (ids_json(job.id for job in jobs),)))
        progressed = self._progressed(job.id for job in jobs)
        undo = self._undo_unfinished(jobs)
        ends: list[End] = []
        for found in jobs:
            job = count_anew(found) if found.id in progressed else found
            late = Abort(job_id=job.id, attempt=job.attempt, outcome="expired")
            if job.id in committed:
                ends.append(give_back(job, late, job.lease_worker, now))
                continue
            unfinished = UnfinishedUndo(undo.get(job.id), job.id in progressed, self._still_undoes(job, "expired"))
            free_max = _EXPIRED_FREE_MAX if unfinished.waits else min(_EXPIRED_FREE_MAX, job.attempts_max - 1)
            free = spared.get(job.id, 0) < free_max
            ends.append(abort(job, late, job.lease_worker, now, unfinished, free=free))
        self._end(ends)

    def job_recover(self, ids: Sequence[int]) -> list[Finished | DetentError]:
        now = self._now()
        jobs = self._jobs(dict.fromkeys(ids))
        running = (job.id for job in jobs.values() if job.committed_at is not None and job.state == "running")
        self._succeed(dict.fromkeys(running), None, None, now)
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

    def _succeed(self, asked: _Asked, attempt: int | None, worker: str | None, now: int) -> set[int]:
        """Move those of these jobs that are held, or committed, to succeeded, with their start and result; return which
        they are. Without an attempt the current one counts, and without a worker that of the lease."""
        if not asked:
            return set()
        told: dict[str, Any] = {"attempt": attempt, "worker": worker, "now": now, "ids": ids_json(asked)}
        statement = _SUCCEED
        ends = [one for one in asked.values() if one is not None]
        if any(one.result is not None for one in ends):
            with_results = {one.job_id: f"{_begun(one)}:{one.result or ''}" for one in ends}
            statement, told["told"] = _SUCCEED_WITH_RESULTS, _json(with_results)
        elif any(one.begun_after is not None for one in ends):
            begun = {one.job_id: _begun(one) for one in ends}
            statement, told["told"] = _SUCCEED_BEGUN, _json(begun)
        # Nearly always it is all of them. RETURNING would give a row for each, and fetching each row takes the
        # interpreter's lock, which other threads may hold.
        self._db.change("SAVEPOINT all_of_them")
        if self._db.change(statement, told) == len(asked):
            results = set(asked)
        else:
            self._db.change("ROLLBACK TO all_of_them")
            results = {row[0] for row in self._db.rows(statement + _WHICH, told)}
            told["ids"] = ids_json(results)
        self._db.change("RELEASE all_of_them")
        self._expect(self._db.change(_DONE, told), len(results), told["ids"], "running")
        if results:
            self._db.change(_COUNTED, (told["ids"],))
        return results

    def _ended_as(self, job_id: int, attempt: int, outcome: Outcome) -> str | None:
        """Return the state that this attempt led to, if it ended with this outcome."""
        return next((str(state) for found, state in self._db.rows(_ENDED, (job_id, attempt)) if found == outcome), None)

    def _end(self, ends: Sequence[End]) -> None:
        """Write attempts that did not succeed: execution row, job row, and the row of its next state."""
        for job, worker, at, outcome, error, state, due_at, spared, reason, expires_at, suspect in ends:
            back = state == "pending"
            self._db.change(
                _ABORTED,
                (
                    *(job.id, job.attempt, worker, job.leased_at, job.started_at, at, outcome, error, state),
                    *(due_at if back else None, spared == job.spared, suspect),
                ),
            )
            rest = (None, None) if back else (error, at)
            ended = self._db.change(
                _END, (state, spared, due_at, *rest, expires_at, job.started_at, job.id, job.attempt)
            )
            self._expect(ended, 1, [job.id], "running")
            self._count_move(job, at, state, outcome)
            if back:
                # Ready or waiting depends on the time of the end, not on the clock.
                self._enter_queue([(self._lane_of(job), due_at, job.id, 0, expires_at)], at)
            elif state == "quarantined":
                self._db.change(_NEW_DEAD, (job.id, job.tenant, job.queue, job.task, reason, at))
            # In the transaction of the ending, so that no failure is lost. An ops run has no failure hooks.
            if state in ("quarantined", "failed") and job.task != OPS_TASK:
                self._db.change(_NEW_UNTOLD, (job.id, job.attempt, job.task))


def _begun(end: Finish) -> int:
    return _NOT_KNOWN if end.begun_after is None else int(end.begun_after * 1_000_000)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _committed_by(job: Job | None, attempt: int) -> bool:
    return job is not None and job.state == "running" and job.attempt == attempt and job.committed_at is not None
