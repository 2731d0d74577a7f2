"""Looking at jobs."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.records import JobRow
from detent.store.contract import Verbs

__all__ = ["explain"]


def explain(verbs: Verbs, job_id: int) -> str:
    """Why a job is where it is, in one sentence for people. `NotFound`."""
    row = _row(verbs, job_id)
    match row.state:
        case "pending":
            return _why_pending(verbs, row)
        case "running":
            return _why_running(verbs, row)
        case "succeeded":
            return f"it succeeded with attempt {row.attempt}"
        case "cancelled":
            return f"it was cancelled ({_last_move(verbs, job_id)})"
        case _:
            return (
                f"it is {row.state} after attempt {row.attempt}: {(row.error or 'no error recorded').splitlines()[-1]}"
            )


def _why_pending(verbs: Verbs, row: JobRow) -> str:
    if row.due_at > verbs.now():
        return f"it waits for its time: due at {row.due_at.isoformat()}" + (
            f" after attempt {row.attempt}" if row.attempt else ""
        )
    paused = verbs.transitions("queue", row.queue)
    if paused and paused[-1].to_state == "paused":
        return f"its queue {row.queue!r} is paused by {paused[-1].actor}: {paused[-1].reason or 'no reason given'}"
    return f"it is ready in queue {row.queue!r} and waits for a worker that knows task {row.task!r}"


def _why_running(verbs: Verbs, row: JobRow) -> str:
    attempts = verbs.job_executions(row.id)
    held = attempts[-1] if attempts else None
    who = f"{held.worker!r} holds attempt {row.attempt}" if held else f"attempt {row.attempt} is in flight"
    if row.cancel_requested_at is not None:
        return f"{who}, and {row.cancel_requested_by} asked for it to stop"
    return f"{who} until {held.expires_at.isoformat()}" if held and held.expires_at else who


def _last_move(verbs: Verbs, job_id: int) -> str:
    lines = verbs.transitions("job", str(job_id))
    return (
        f"{lines[-1].trigger} by {lines[-1].actor}: {lines[-1].reason or 'no reason given'}" if lines else "unrecorded"
    )


def _row(verbs: Verbs, job_id: int) -> JobRow:
    (row,) = verbs.job_get([job_id])
    if row is None:
        raise NotFound("job", str(job_id))
    return row
