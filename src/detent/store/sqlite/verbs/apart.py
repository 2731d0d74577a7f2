"""The services' verbs row by row, for a batch that a damaged row makes fail.

Each row has a savepoint of its own. A row that cannot be handled is undone and reported, and the next one follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from heapq import merge
from itertools import islice

from detent.errors import DetentError, GuardViolation, NotFound
from detent.model.records import BadRow, EachDone, Reaped
from detent.model.service_records import OperationRow
from detent.store.sqlite.verbs.base import Job, ids_json
from detent.store.sqlite.verbs.endings import EndingVerbs
from detent.store.sqlite.verbs.operations import OperationVerbs
from detent.store.sqlite.verbs.savepoints import SavepointVerbs

__all__ = ["ApartVerbs"]

_BUT = "NOT IN (SELECT value FROM json_each(?))"
_DUE = f"""
SELECT lane_id, due_at, job_id, holds_key, expires_at FROM detent_waiting
 WHERE limit_key IS NULL AND due_at <= ? AND job_id {_BUT} ORDER BY due_at, job_id LIMIT ?
"""
_TO_READY = "INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key, expires_at) VALUES (?, ?, ?, ?, ?)"
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
_HELD = """
SELECT j.id FROM detent_lease l, json_each(l.job_ids) held
  JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
 WHERE l.id = ? AND l.expires_at <= ? ORDER BY j.id
"""
_LEASE_GOES = """
DELETE FROM detent_lease
 WHERE id = ? AND expires_at <= ?
   AND NOT EXISTS (SELECT 1 FROM json_each(job_ids) held
                     JOIN detent_job j ON j.id = held.value AND j.lease_id = detent_lease.id AND j.state = 'running')
"""
_SKIP = """
UPDATE detent_operation
   SET after_id = (SELECT min(id) FROM detent_job WHERE id > after_id), looked_at = looked_at + 1, refused = refused + 1
 WHERE id = ? AND state = 'running'
   AND EXISTS (SELECT 1 FROM detent_job WHERE id > after_id AND id <= until_id)
"""


class ApartVerbs(SavepointVerbs, EndingVerbs, OperationVerbs):
    """`job_promote_each`, `job_expire_each`, `lease_reap_each` and `operation_skip`."""

    def job_promote_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        """In the order of their time."""
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
        self._db.change(_TO_READY, row)
        self._db.change(_NOT_WAITING, (row[2],))

    def job_expire_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        """In the order of expiry."""
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
        """Lease by lease in the order of expiry, and job by job."""
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
            gone += self._db.change(_LEASE_GOES, (lease_id, now))
        return Reaped(gone, tuple(aborted), tuple(recovered), bad=tuple(bad))

    def _read_held(self, lease_id: int, now: int, into: list[Job]) -> None:
        into += self._jobs(row[0] for row in self._db.rows(_HELD, (lease_id, now))).values()

    def _reap_job(self, job: Job, now: int) -> None:
        if job.committed_at is not None:
            self._succeed({job.id: None}, None, None, now)
        else:
            self._end_as_expired([job], now)

    def operation_skip(self, operation_id: int) -> OperationRow | DetentError:
        """One update of its row."""
        self._db.change(_SKIP, (operation_id,))
        return self.operation_get(operation_id) or NotFound("operation", str(operation_id))
