"""Cancelling jobs on SQLite: at once, or by a request; and having their children cancelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from detent.errors import AlreadyCommitted, DetentError, NotFound
from detent.model.graph_records import GRAPH_TASK
from detent.model.records import Cancelled
from detent.store.jobs.move_rules import check_undo, undeclared
from detent.store.sqlite.verb_base import Job, VerbBase

__all__ = ["NODES", "CancelRequest", "SqliteCancels", "in_id_order"]

T = TypeVar("T")

_REQUEST_CANCEL = """
UPDATE detent_job SET cancel_requested_at = ?, cancel_requested_by = ?, cancel_reason = ?, cancel_undo = ?
 WHERE id = ? AND attempt = ? AND state = ?
"""
_UNDO_WAIVED = "SELECT 1 FROM detent_job WHERE id = ? AND cancel_undo IS 0"
_DUE_NOW = "UPDATE detent_job SET due_at = ? WHERE id = ? AND state = 'pending'"
_STOP_WAITING = """
DELETE FROM detent_waiting WHERE job_id = ? AND limit_key IS NULL RETURNING lane_id, holds_key, expires_at
"""
_TO_READY = "INSERT INTO detent_ready (lane_id, ready_at, job_id, holds_key, expires_at) VALUES (?, ?, ?, ?, ?)"
_PUT_AWAY = """
UPDATE detent_job
   SET state = :to, finished_at = :now,
       committed_at = CASE WHEN :to = 'succeeded' THEN coalesce(committed_at, :now) ELSE committed_at END
 WHERE id = :id AND attempt = :attempt AND state = :from
"""
_LEAVE_READY = "DELETE FROM detent_ready WHERE lane_id = ? AND ready_at = ? AND job_id = ?"
_LEAVE_WAITING = "DELETE FROM detent_waiting WHERE job_id = ?"
_GIVE_KEY_BACK = "DELETE FROM detent_job_key WHERE until_claim AND job_id = ?"
_NOT_DEAD = "DELETE FROM detent_dead WHERE job_id = ?"
_DEAD = "INSERT INTO detent_dead (job_id, tenant, queue, task, reason, quarantined_at) VALUES (?, ?, ?, ?, 'forced', ?)"
# Those that are spawned after a retry have larger ids.
_CANCEL_TREE = """
INSERT INTO detent_tree_cancel (root_id, job_id, until_id, actor, reason, undo)
SELECT ?, parent_id, id, ?, ?, ? FROM detent_job WHERE parent_id = ? ORDER BY id DESC LIMIT 1
"""
NODES = "SELECT id, state FROM detent_job WHERE parent_id = ? ORDER BY id"
"""The jobs of the nodes of a graph."""


class CancelRequest(NamedTuple):
    """Who cancels, and why; whether workflows undo their steps; and the job with which the cancel of a tree began."""

    actor: str
    reason: str | None
    undo: bool = True
    root_id: int | None = None

    @property
    def metadata(self) -> str | None:
        """What the record says beside the reason."""
        return None if self.undo else '{"undo":false}'

    def of_children(self, job_id: int) -> CancelRequest:
        """Return the request for the children of a job."""
        if self.root_id is not None:
            return self
        reason = f"with job {job_id}" + (f": {self.reason}" if self.reason is not None else "")
        return CancelRequest(self.actor, reason, self.undo, job_id)


def in_id_order(ids: Sequence[int], act: Callable[[int], T]) -> list[T]:
    """Act on jobs by id, as PostgreSQL does, so that the record has the same order. Return the answers in the order of
    `ids`."""
    answers = {place: act(ids[place]) for place in sorted(range(len(ids)), key=lambda place: (ids[place], place))}
    return [answers[place] for place in range(len(ids))]


class SqliteCancels(VerbBase):
    """`job_cancel`, and what other explicit moves share with it."""

    def job_cancel(
        self, ids: Sequence[int], actor: str, reason: str | None = None, *, undo: bool = True
    ) -> list[Cancelled | DetentError]:
        check_undo(undo, reason)
        now, asked = self._now(), CancelRequest(actor, reason, undo)
        return in_id_order(ids, lambda job_id: self._cancel(job_id, asked, now))

    def _cancel(self, job_id: int, asked: CancelRequest, now: int) -> Cancelled | DetentError:
        job = self._jobs([job_id]).get(job_id)
        if job is None:
            return NotFound("job", str(job_id))
        if job.committed_at is not None:
            return AlreadyCommitted(job_id, job.attempt)
        if job.state == "cancelled":
            return Cancelled(job_id, "cancelled")
        if job.state not in ("pending", "running"):
            return undeclared(job.id, job.state, "cancelled", job.run_state)
        # Only a job that was claimed has recorded anything.
        undo_is_open = self._undo_is_open(job_id) if job.attempt else None
        state = job.state
        if state == "pending" and not (asked.undo and undo_is_open):
            self._put_away(job, "cancelled", "cancel", asked.actor, asked.reason, now, asked.metadata)
            if job.task == GRAPH_TASK:
                self._cancel_nodes(job_id, asked, now)
            state = "cancelled"
        elif job.cancel_requested_at is None or not (asked.undo or self._db.rows(_UNDO_WAIVED, (job_id,))):
            self._request_cancel(job, asked, now)
        else:
            return Cancelled(job_id, state)
        if undo_is_open is not None:
            self._cancel_children(job_id, asked)
        return Cancelled(job_id, state)

    def _request_cancel(self, job: Job, asked: CancelRequest, now: int) -> None:
        """Request that a job is cancelled. A pending one is due now: a worker undoes its steps."""
        at = self._log(job, job.state, "request_cancel", asked.actor, asked.reason, now, asked.metadata)
        undo = None if asked.undo else 0
        values = (at, asked.actor, asked.reason, undo, job.id, job.attempt, job.state)
        self._expect(self._db.change(_REQUEST_CANCEL, values), 1, [job.id], job.state)
        if job.state == "pending":
            for lane_id, holds_key, expires_at in self._db.rows(_STOP_WAITING, (job.id,)):
                self._db.change(_TO_READY, (lane_id, at, job.id, holds_key, expires_at))
                self._db.change(_DUE_NOW, (at, job.id))

    def _cancel_children(self, job_id: int, asked: CancelRequest) -> None:
        """Have the children of a job cancelled, if it has any."""
        of = asked.of_children(job_id)
        self._db.change(_CANCEL_TREE, (of.root_id, of.actor, of.reason, int(of.undo), job_id))

    def _cancel_nodes(self, graph_id: int, asked: CancelRequest, now: int) -> None:
        """The last ones first, so that none is made ready, or cancelled, because of another."""
        of = asked.of_children(graph_id)
        for node_id, state in reversed(self._db.rows(NODES, (graph_id,))):
            if state in ("pending", "running"):
                self._cancel(node_id, of, now)

    def _put_away(
        self,
        job: Job,
        to_state: str,
        trigger: str,
        actor: str,
        reason: str | None,
        now: int,
        metadata: str | None = None,
    ) -> None:
        """Move a job to a state of rest: leave the queue and release its key, and leave or enter the dead letters."""
        at = self._log(job, to_state, trigger, actor, reason, now, metadata)
        where = {"id": job.id, "attempt": job.attempt, "from": job.state, "to": to_state, "now": at}
        self._expect(self._db.change(_PUT_AWAY, where), 1, [job.id], job.state)
        if job.state == "pending":
            if not self._db.change(_LEAVE_WAITING, (job.id,)):
                lane = self._lane(self._lane_of(job))
                self._in_place(job, self._db.change(_LEAVE_READY, (lane, job.due_at, job.id)))
            self._db.change(_GIVE_KEY_BACK, (job.id,))
        else:
            self._db.change(_NOT_DEAD, (job.id,))
        if to_state == "quarantined":
            self._db.change(_DEAD, (job.id, job.tenant, job.queue, job.task, at))
