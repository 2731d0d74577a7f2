"""Explicit moves and the services' verbs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import AlreadyCommitted, DetentError, NotFound, NotUnknown, PartOfRun, RunBusy
from detent.model.ops_records import ops_state
from detent.model.records import Cancelled, Moved, Prunable, Pruned
from detent.store.postgres.statements.base import Row, Statement, moment, numbers, texts, undeclared

__all__ = [
    "effect_settle",
    "entity_log",
    "job_cancel",
    "job_discard",
    "job_drop",
    "job_expire",
    "job_force",
    "job_promote",
    "job_prunable",
    "job_prune",
    "job_retry",
    "queue_pause",
    "queue_resume",
]

_CANCEL = "SELECT ord, state, committed_attempt, refused FROM detent.job_cancel_v1(%s::bigint[], %s::text, %s::text)"
_RETRY = "SELECT ord, from_state FROM detent.job_retry_v1(%s::bigint[], %s::text, %s::text, %s::boolean)"
_DISCARD = "SELECT ord, from_state FROM detent.job_discard_v1(%s::bigint[], %s::text, %s::text)"
_FORCE = "SELECT from_state, moved FROM detent.job_force_v1(%s::bigint, %s::text, %s::text, %s::text)"
_SETTLE = """
SELECT from_state, dead_reason, settled
  FROM detent.effect_settle_v1(%s::bigint, %s::boolean, %s::text, %s::text, %s::text)
"""
_PROMOTE = "SELECT detent.job_promote_v1(%s::integer)"
_EXPIRE = "SELECT detent.job_expire_v1(%s::integer)"
_PRUNE = "SELECT jobs, next_id FROM detent.job_prune_v1(%s::timestamptz, %s::bigint, %s::integer, %s::text, %s::text[])"
_PRUNABLE = "SELECT ids, next_id FROM detent.job_prunable_v1(%s::timestamptz, %s::bigint, %s::integer, %s::text[])"
_DROP_JOBS = "SELECT detent.job_drop_v1(%s::bigint[], %s::timestamptz, %s::text)"
_PAUSE = "SELECT detent.queue_pause_v1(%s::text, %s::text, %s::text)"
_RESUME = "SELECT detent.queue_resume_v1(%s::text, %s::text, %s::text)"
_LOG = """
SELECT detent.entity_move_v1(%s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text)
"""


def job_cancel(ids: Sequence[int], actor: str, reason: str | None) -> Statement[list[Cancelled | DetentError]]:
    """One row per item, in the order of the jobs."""

    def decode(rows: Sequence[Row]) -> list[Cancelled | DetentError]:
        answers = {row[0]: _cancelled(ids[row[0] - 1], *row[1:]) for row in rows}
        return [answers[n] for n in range(1, len(ids) + 1)]

    return Statement(_CANCEL, (numbers(ids), actor, reason), decode)


def _cancelled(job_id: int, state: str | None, committed: int | None, refused: bool) -> Cancelled | DetentError:
    if state is None:
        return NotFound("job", str(job_id))
    if committed is not None:
        return AlreadyCommitted(job_id, committed)
    return undeclared(job_id, state, "cancelled") if refused else Cancelled(job_id, state)


def job_retry(
    ids: Sequence[int], actor: str, reason: str | None, *, notify: bool
) -> Statement[list[Moved | DetentError]]:
    """One row per item, in the order of the jobs. `notify` as for `job_enqueue`."""
    leaves = ("failed", "quarantined", "cancelled")
    return Statement(_RETRY, (numbers(ids), actor, reason, notify), lambda rows: _moved(ids, rows, "pending", leaves))


def job_discard(ids: Sequence[int], actor: str, reason: str | None) -> Statement[list[Moved | DetentError]]:
    """One row per item, in the order of the jobs."""
    leaves = ("quarantined", "failed")
    return Statement(_DISCARD, (numbers(ids), actor, reason), lambda rows: _moved(ids, rows, "cancelled", leaves))


def _moved(ids: Sequence[int], rows: Sequence[Row], to_state: str, leaves: Sequence[str]) -> list[Moved | DetentError]:
    found = {row[0]: row[1] for row in rows}
    return [_move(job_id, found[n], to_state, found[n] in leaves) for n, job_id in enumerate(ids, start=1)]


def _move(job_id: int, from_state: str | None, to_state: str, moved: bool) -> Moved | DetentError:
    if from_state is None:
        return NotFound("job", str(job_id))
    if from_state.startswith("run:"):
        return RunBusy(int(from_state[4:]), f"a retry of job {job_id}", "a rollback was asked for")
    if from_state.startswith("part:"):
        return PartOfRun(job_id, int(from_state[5:]))
    if moved or from_state == to_state or from_state == f"ops_run {ops_state(to_state, False)}":
        return Moved(str(job_id), to_state, moved)
    return undeclared(job_id, from_state, to_state)


def job_force(job_id: int, to_state: str, actor: str, reason: str) -> Statement[Moved | DetentError]:
    """No row where there is no such job."""

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        from_state, moved = rows[0] if rows else (None, False)
        return _move(job_id, from_state, to_state, moved)

    return Statement(_FORCE, (job_id, to_state, actor, reason), decode)


def effect_settle(
    job_id: int, done: bool, actor: str, reason: str, result: str | None
) -> Statement[Moved | DetentError]:
    """No row where there is no such job."""
    to_state = "succeeded" if done else "pending"

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        from_state, dead_reason, settled = rows[0] if rows else (None, None, False)
        if from_state == "quarantined" and not settled:
            return NotUnknown(job_id, dead_reason)
        return _move(job_id, from_state, to_state, settled)

    return Statement(_SETTLE, (job_id, done, actor, reason, result), decode)


def job_promote(limit: int) -> Statement[int]:
    """How many."""
    return Statement(_PROMOTE, (limit,), lambda rows: int(rows[0][0]))


def job_expire(limit: int) -> Statement[list[int]]:
    """Which."""
    return Statement(_EXPIRE, (limit,), lambda rows: [int(row[0]) for row in rows])


def job_prune(
    before: datetime, after_id: int, limit: int, actor: str, states: Sequence[str] | None
) -> Statement[Pruned]:
    """How many, and where to go on."""
    params = (moment(before, field="before"), after_id, limit, actor, None if states is None else texts(states))
    return Statement(_PRUNE, params, lambda rows: Pruned(*rows[0]))


def job_prunable(before: datetime, after_id: int, limit: int, states: Sequence[str] | None) -> Statement[Prunable]:
    """Locked until the transaction ends."""
    params = (moment(before, field="before"), after_id, limit, None if states is None else texts(states))
    return Statement(_PRUNABLE, params, lambda rows: Prunable(tuple(rows[0][0]), rows[0][1]))


def job_drop(ids: Sequence[int], before: datetime, actor: str) -> Statement[int]:
    """How many went."""
    params = (numbers(ids), moment(before, field="before"), actor)
    return Statement(_DROP_JOBS, params, lambda rows: int(rows[0][0]))


def queue_pause(queue: str, actor: str, reason: str | None) -> Statement[Moved]:
    """Paused now, by this call or before."""
    return Statement(_PAUSE, (queue, actor, reason), lambda rows: Moved(queue, "paused", bool(rows[0][0])))


def queue_resume(queue: str, actor: str, reason: str | None) -> Statement[Moved]:
    """Open now, by this call or before."""
    return Statement(_RESUME, (queue, actor, reason), lambda rows: Moved(queue, "open", bool(rows[0][0])))


def entity_log(
    entity: str,
    entity_id: str,
    from_state: str,
    to_state: str,
    trigger: str,
    actor: str,
    reason: str | None,
    metadata: str | None,
) -> Statement[None]:
    """The record of a move, before the move."""
    params = (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata)
    return Statement(_LOG, params, lambda rows: None)
