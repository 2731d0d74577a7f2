"""Claiming, promoting, expiring and reaping row by row on SQLite, if a damaged row makes a whole batch fail.

Each row has a savepoint of its own. A row that cannot be handled is undone and reported, and the next one follows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from heapq import merge
from itertools import islice
from typing import Unpack

from detent.errors import GuardViolation
from detent.model.records import BadRow, ClaimedEach, EachDone, Reaped
from detent.store.jobs.contract import ClaimTerms
from detent.store.jobs.sqlite_claim import CLAIM, GIVE_KEYS_BACK, LANES_MAX, NEW_LEASE, SqliteClaim
from detent.store.jobs.sqlite_endings import HELD, LEASE_GOES, SqliteEndings
from detent.store.jobs.sqlite_moves import SqliteMoves
from detent.store.jobs.sqlite_upkeep import TO_READY
from detent.store.limits.sqlite_lanes import Wanted
from detent.store.row_errors import cause_of, is_of_one_row
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.driver.failures import translated
from detent.store.sqlite.verb_base import Job, ids_json, micros

__all__ = ["SqliteRowByRow"]

_TAKE = "DELETE FROM detent_ready WHERE lane_id = ? AND ready_at = ? AND job_id = ?"
_COMMITTED = """
SELECT attempt, committed_at, done_at FROM detent_execution
 WHERE job_id = ? AND committed_at IS NOT NULL ORDER BY attempt LIMIT 1
"""
_SUCCEEDED = """
UPDATE detent_job
   SET state = 'succeeded', attempt = max(attempt, :attempt), ended = max(attempt, :attempt),
       committed_at = :committed_at, finished_at = :done_at
 WHERE id = :id AND state = 'pending'
"""
_BUT = "NOT IN (SELECT value FROM json_each(?))"
_DUE = f"""
SELECT lane_id, due_at, job_id, holds_key, expires_at FROM detent_waiting
 WHERE limit_key IS NULL AND due_at <= ? AND job_id {_BUT} ORDER BY due_at, job_id LIMIT ?
"""
_NOT_WAITING = "DELETE FROM detent_waiting WHERE job_id = ?"
_LATE = tuple(
    f"SELECT expires_at, job_id FROM {table} WHERE expires_at IS NOT NULL AND expires_at <= ? AND job_id {_BUT}"
    " ORDER BY expires_at, job_id LIMIT ?"
    for table in ("detent_ready", "detent_waiting")
)
_EXPIRED = f"""
SELECT id FROM detent_lease
 WHERE expires_at <= ? AND NOT (expires_at > ? AND expires_at <= ?) AND id {_BUT} ORDER BY expires_at, id LIMIT ?
"""


class SqliteRowByRow(SqliteClaim, SqliteEndings, SqliteMoves):
    """`job_claim_each`, `job_promote_each`, `job_expire_each` and `lease_reap_each`."""

    def job_claim_each(self, skip: Sequence[int], **terms: Unpack[ClaimTerms]) -> ClaimedEach:
        """Claim each job under its own savepoint. A row that is deleted stays deleted even if its job is undone."""
        now = self._now()
        lease_id, left_out = terms["lease_id"], frozenset(skip)
        after_tenant, limit = terms.get("after_tenant"), terms["limit"]
        room = self._room(terms["queues"], terms["tasks"], limit)
        wanted = Wanted.of(terms["tasks"], terms["queues"], terms.get("tenants"), terms.get("versions"), limit)
        lanes = self._scan(wanted, None, max(limit, LANES_MAX)).lanes
        if room is not None:
            rows = self._choose_within(room, lanes, limit, after_tenant, now, left_out)
            self._spend(room)
        else:
            in_order = self._in_order(lanes, limit, after_tenant, now, takes=lambda row: row[1] not in left_out)
            rows = list(islice(in_order, limit))
        held: list[int] = []
        bad: list[BadRow] = []
        for row in rows:
            cause = self._not_claimable(row, now)
            if cause is None:
                cause = self._alone(partial(self._claim_one, row, lease_id, now))
            if cause is None:
                held.append(row[1])
            else:
                bad.append(BadRow("job", str(row[1]), cause, row[1]))
        if held:
            expires_at = now + micros(terms["lease"])
            self._db.change(NEW_LEASE, (lease_id, terms["worker"], now, expires_at, ids_json(held)))
        jobs = tuple(self.claim_taken(lease_id, ids_json(held))) if held else ()
        return ClaimedEach(jobs, tuple(bad))

    def _claim_one(self, row: Row, lease_id: int, now: int) -> None:
        ready_at, job_id, lane, holds_key = row[:4]
        self._db.change(_TAKE, (lane, ready_at, job_id))
        if holds_key:
            self._db.change(GIVE_KEYS_BACK, (ids_json([job_id]),))
        self._expect(self._db.change(CLAIM, (lease_id, now, ids_json([job_id]))), 1, [job_id], "pending")

    def _not_claimable(self, row: Row, now: int) -> str | None:
        """Return why the row has no job that may be claimed, and delete the row; None for a healthy row."""
        ready_at, job_id, lane = row[:3]
        found = self._db.rows("SELECT state FROM detent_job WHERE id = ?", (job_id,))
        committed = self._db.rows(_COMMITTED, (job_id,))
        if not found:
            cause = "a row in ready has no job"
        elif found[0][0] != "pending":
            cause = f"the job is {found[0][0]} and has a row in ready"
        elif committed:
            refused = self._alone(partial(self._succeed_again, job_id, committed[0], now))
            if refused is not None:
                return refused
            cause = f"attempt {committed[0][0]} has committed: the job is succeeded, and does not run again"
        else:
            return None
        self._db.change(_TAKE, (lane, ready_at, job_id))
        return cause

    def _succeed_again(self, job_id: int, committed: Row, now: int) -> None:
        attempt, committed_at, done_at = committed
        job = self._jobs([job_id])[job_id]
        self._log(job, "succeeded", "repair", "system", f"attempt {attempt} has committed", now)
        found = {"id": job_id, "attempt": attempt, "committed_at": committed_at, "done_at": done_at}
        self._expect(self._db.change(_SUCCEEDED, found), 1, [job_id], "pending")

    def job_promote_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        done: list[int] = []
        bad: list[BadRow] = []
        for row in self._db.rows(_DUE, (self._now(), ids_json(skip), limit)):
            cause = self._alone(partial(self._promote, row))
            if cause is None:
                done.append(row[2])
            else:
                bad.append(BadRow("job", str(row[2]), cause, row[2]))
        return EachDone(tuple(done), tuple(bad))

    def _promote(self, row: Sequence[object]) -> None:
        self._db.change(TO_READY, row)
        self._db.change(_NOT_WAITING, (row[2],))

    def job_expire_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        now = self._now()
        found = merge(*(self._db.rows(statement, (now, ids_json(skip), limit)) for statement in _LATE))
        done: list[int] = []
        bad: list[BadRow] = []
        for _, job_id in islice(found, limit):
            cause = self._alone(partial(self._expire, job_id, now))
            if cause is None:
                done.append(job_id)
            else:
                bad.append(BadRow("job", str(job_id), cause, job_id))
        return EachDone(tuple(done), tuple(bad))

    def _expire(self, job_id: int, now: int) -> None:
        job = self._jobs([job_id]).get(job_id)
        if job is None:
            raise GuardViolation(self._database, "the job does not exist")
        if job.state != "pending":
            raise GuardViolation(self._database, f"the job is {job.state}, not pending")
        self._put_away(job, "cancelled", "expire", "system", None, now)

    def lease_reap_each(self, limit: int, skip: Sequence[int], grace: float | None = None) -> Reaped:
        now = self._now()
        gone = 0
        aborted: list[int] = []
        recovered: list[int] = []
        bad: list[BadRow] = []
        for (lease_id,) in self._db.rows(_EXPIRED, (now, *self._unwatched(now, grace), ids_json(skip), limit)):
            jobs: list[Job] = []
            cause = self._alone(partial(self._read_held, lease_id, now, jobs))
            if cause is not None:
                bad.append(BadRow("lease", str(lease_id), cause, lease_id))
                continue
            for job in jobs:
                cause = self._alone(partial(self._reap_job, job, now))
                if cause is not None:
                    bad.append(BadRow("job", str(job.id), cause, lease_id))
                elif job.committed_at is None:
                    aborted.append(job.id)
                else:
                    recovered.append(job.id)
            gone += self._db.change(LEASE_GOES, (lease_id, now))
        return Reaped(gone, tuple(aborted), tuple(recovered), bad=tuple(bad))

    def _read_held(self, lease_id: int, now: int, into: list[Job]) -> None:
        into += self._jobs(row[0] for row in self._db.rows(HELD, (lease_id, now))).values()

    def _reap_job(self, job: Job, now: int) -> None:
        if job.committed_at is not None:
            self._succeed({job.id: None}, None, None, now)
        else:
            self._end_as_expired([job], now)

    def _alone(self, work: Callable[[], None]) -> str | None:
        """Run `work` under a savepoint. If a row makes it fail, undo it and return the cause."""
        self._db.change("SAVEPOINT one_row")
        try:
            work()
        except Exception as error:
            known = translated(error, self._database) if isinstance(error, sqlite3.Error) else error
            if not is_of_one_row(known):
                raise
            self._db.change("ROLLBACK TO one_row")
            self._db.change("RELEASE one_row")
            self._lanes.clear()
            return cause_of(known)
        self._db.change("RELEASE one_row")
        return None
