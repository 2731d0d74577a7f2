"""Explicit moves of jobs on PostgreSQL, and pausing queues."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import AlreadyCommitted, BeingUndone, DetentError, NotFound, NotUnknown, PartOfRun, RunBusy
from detent.model.records import Cancelled, Moved
from detent.store.jobs.move_rules import check_undo, moved_to, undeclared
from detent.store.postgres.statement import Row, Statement, numbers
from detent.store.postgres.verb_base import VerbBase, requeues, runs, runs_each

__all__ = ["PostgresMoves", "job_cancel", "job_retry"]

_CANCEL = """
SELECT ord, state, committed_attempt, refused
  FROM detent.job_cancel_v1(%s::bigint[], %s::text, %s::text, %s::boolean)
"""
_RETRY = """
SELECT ord, from_state, moved, run_state, busy_run_id, carried_run_id, undo_id
  FROM detent.job_retry_v2(%s::bigint[], %s::text, %s::text, %s::boolean)
"""
_DISCARD = """
SELECT ord, from_state, moved, run_state FROM detent.job_discard_v2(%s::bigint[], %s::text, %s::text)
"""
_FORCE = """
SELECT from_state, moved, run_state FROM detent.job_force_v2(%s::bigint, %s::text, %s::text, %s::text)
"""
_SETTLE = """
SELECT from_state, dead_reason, settled
  FROM detent.effect_settle_v1(%s::bigint, %s::boolean, %s::text, %s::text, %s::text)
"""
_MOVE = """
SELECT ord, from_state, moved
  FROM detent.job_move_v1(%s::bigint[], %s::text, %s::smallint, %s::text, %s::text, %s::text)
"""
_PAUSE = "SELECT detent.queue_pause_v1(%s::text, %s::text, %s::text)"
_RESUME = "SELECT detent.queue_resume_v1(%s::text, %s::text, %s::text)"


def job_cancel(
    ids: Sequence[int], actor: str, reason: str | None = None, *, undo: bool = True
) -> Statement[list[Cancelled | DetentError]]:
    check_undo(undo, reason)

    def decode(rows: Sequence[Row]) -> list[Cancelled | DetentError]:
        answers = {row[0]: _cancelled(ids[row[0] - 1], *row[1:]) for row in rows}
        return [answers[n] for n in range(1, len(ids) + 1)]

    return Statement(_CANCEL, (numbers(ids), actor, reason, undo), decode)


def _cancelled(job_id: int, state: str | None, committed: int | None, refused: bool) -> Cancelled | DetentError:
    if state is None:
        return NotFound("job", str(job_id))
    if committed is not None:
        return AlreadyCommitted(job_id, committed)
    return undeclared(job_id, state, "cancelled") if refused else Cancelled(job_id, state)


def job_retry(
    ids: Sequence[int], actor: str, reason: str | None = None, *, notify: bool
) -> Statement[list[Moved | DetentError]]:
    """`notify` as for `job_enqueue`."""

    def decode(rows: Sequence[Row]) -> list[Moved | DetentError]:
        found = {row[0]: row[1:] for row in rows}
        return [_retried(job_id, *found[n]) for n, job_id in enumerate(ids, start=1)]

    return Statement(_RETRY, (numbers(ids), actor, reason, notify), decode)


def _retried(
    job_id: int,
    state: str | None,
    moved: bool,
    run_state: str | None,
    busy_run_id: int | None,
    carried_run_id: int | None,
    undo_id: int | None,
) -> Moved | DetentError:
    if busy_run_id is not None:
        return RunBusy(busy_run_id, f"a retry of job {job_id}", "a rollback was asked for")
    if carried_run_id is not None:
        return PartOfRun(job_id, carried_run_id)
    if undo_id is not None:
        return BeingUndone(job_id, undo_id)
    return _moved(job_id, "pending", state, moved, run_state)


def job_discard(ids: Sequence[int], actor: str, reason: str | None = None) -> Statement[list[Moved | DetentError]]:
    def decode(rows: Sequence[Row]) -> list[Moved | DetentError]:
        found = {row[0]: row[1:] for row in rows}
        return [_moved(job_id, "cancelled", *found[n]) for n, job_id in enumerate(ids, start=1)]

    return Statement(_DISCARD, (numbers(ids), actor, reason), decode)


def job_force(job_id: int, to_state: str, actor: str, reason: str) -> Statement[Moved | DetentError]:
    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        return _moved(job_id, to_state, *rows[0]) if rows else NotFound("job", str(job_id))

    return Statement(_FORCE, (job_id, to_state, actor, reason), decode)


def _moved(
    job_id: int, to_state: str, state: str | None, moved: bool, run_state: str | None = None
) -> Moved | DetentError:
    if state is None:
        return NotFound("job", str(job_id))
    if moved or state == to_state:
        return Moved(str(job_id), to_state, moved)
    return undeclared(job_id, state, to_state, run_state)


def effect_settle(
    job_id: int, done: bool, actor: str, reason: str, result: str | None = None
) -> Statement[Moved | DetentError]:
    to_state = "succeeded" if done else "pending"

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        from_state, dead_reason, settled = rows[0] if rows else (None, None, False)
        if from_state == "quarantined" and not settled:
            return NotUnknown(job_id, dead_reason)
        return _moved(job_id, to_state, from_state, settled)

    return Statement(_SETTLE, (job_id, done, actor, reason, result), decode)


def job_move(
    ids: Sequence[int], queue: str | None, priority: int | None, actor: str, reason: str | None = None
) -> Statement[list[Moved | DetentError]]:
    def decode(rows: Sequence[Row]) -> list[Moved | DetentError]:
        found = {place: rest for place, *rest in rows}
        return [_moved(job_id, "pending", *found[n]) for n, job_id in enumerate(ids, start=1)]

    params = (numbers(ids), queue, priority, actor, reason, moved_to(queue, priority))
    return Statement(_MOVE, params, decode)


def queue_pause(queue: str, actor: str, reason: str | None = None) -> Statement[Moved]:
    return Statement(_PAUSE, (queue, actor, reason), lambda rows: Moved(queue, "paused", bool(rows[0][0])))


def queue_resume(queue: str, actor: str, reason: str | None = None) -> Statement[Moved]:
    return Statement(_RESUME, (queue, actor, reason), lambda rows: Moved(queue, "open", bool(rows[0][0])))


class PostgresMoves(VerbBase):
    """Explicit moves. Each function takes jobs in id order, to avoid deadlocks."""

    job_cancel = runs_each(job_cancel)
    job_discard = runs_each(job_discard)
    job_force = runs(job_force)
    effect_settle = requeues(runs(effect_settle))
    job_move = requeues(runs_each(job_move))
    queue_pause = runs(queue_pause)
    queue_resume = runs(queue_resume)

    def job_retry(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        """Notify waiters at once from a caller's own transaction."""
        if not ids:
            return []
        answers = self._session.run(job_retry(ids, actor, reason, notify=self._callers_own))
        self._forget_bounds()
        return answers
