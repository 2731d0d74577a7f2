"""The claim job by job, for a claim that a damaged row makes fail."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Unpack

from detent.model.records import BadRow, ClaimedEach
from detent.store.ahead import ClaimTerms
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verbs.base import ids_json, micros
from detent.store.sqlite.verbs.claim import CLAIM, GIVE_KEYS_BACK, LANES_MAX, NEW_LEASE, ClaimVerbs
from detent.store.sqlite.verbs.lanes import Wanted
from detent.store.sqlite.verbs.savepoints import SavepointVerbs

__all__ = ["ClaimEachVerbs"]

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


class ClaimEachVerbs(SavepointVerbs, ClaimVerbs):
    """`job_claim_each`."""

    def job_claim_each(self, skip: Sequence[int], **terms: Unpack[ClaimTerms]) -> ClaimedEach:
        """Each job under a savepoint of its own. A row that is deleted stays deleted, whatever becomes of its job."""
        now = self._now()
        lease_id, left_out = terms["lease_id"], frozenset(skip)
        after_tenant, limit = terms.get("after_tenant"), terms["limit"]
        room = self._room(terms["queues"], terms["tasks"], limit)
        wanted = Wanted.of(terms["tasks"], terms["queues"], terms.get("tenants"), limit)
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
        """Why the row stands for no job that may be claimed. Such a row is deleted. None for a healthy row."""
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
