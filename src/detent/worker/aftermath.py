"""What becomes of the jobs of a child that died: what had begun counts, what had not goes back untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from detent.errors import DetentError
from detent.model.records import Abort, Aborted, Claimed, ExecutionRow, Outcome
from detent.store.contract import Store
from detent.worker.board import Line

__all__ = ["Remains", "died_with_its_process", "end_lease"]

_CRASH_DELAY = 1.0
_DIED = "its process ended with"


def died_with_its_process(execution: ExecutionRow) -> bool:
    """Whether the attempt was in a process when that died by itself: then the job may be the one to blame."""
    return execution.outcome == "crashed" or (
        execution.outcome == "released" and (execution.error or "").startswith(_DIED)
    )


@dataclass(frozen=True, slots=True)
class Remains:
    """A lease of a dead child, with what its board said when it died at `at`.

    `killed` says why its supervisor ended it; None where it died by itself. `cancelled` are jobs it was told to stop.
    """

    lease_id: int
    lines: Mapping[int, Line]
    at: float
    ended_with: str
    killed: str | None
    cancelled: frozenset[int]


def end_lease(store: Store, remains: Remains, worker: str) -> list[Aborted | DetentError]:
    """End what is still held under it; what became of it.

    A job that was alone in its process when that died by itself has used up an attempt. One that was not alone or not
    in that process itself, or whose process was ended by the supervisor because of another job or to stop, has not,
    unless it must not be repeated blindly: then how far it came is not known.
    """
    aborts: list[Abort] = []
    for claimed in store.claim_find(remains.lease_id):
        if claimed.committed:
            store.job_recover([claimed.job_id])
        else:
            aborts.append(_abort(store, remains, claimed))
    return store.job_abort(aborts, worker) if aborts else []


def _abort(store: Store, remains: Remains, claimed: Claimed) -> Abort:
    line = remains.lines.get(claimed.job_id)
    outcome: Outcome = "crashed"
    error: str | None = f"{_DIED} {remains.ended_with} while it ran"
    if line is None or line.attempt != claimed.attempt:
        outcome, error = "released", None
    elif claimed.job_id in remains.cancelled:
        outcome, error = "cancelled", "did not stop after a cancel, and held its process: the process was ended"
    elif line.deadline and remains.at > line.deadline:
        outcome, error = "timed_out", "ran into its time-out and held its process: the process was ended"
    elif remains.killed is None and line.here and sum(one.here for one in remains.lines.values()) > 1:
        # Any of them may be the one to blame. Each is tried again in a process of its own, where only that one dies.
        outcome, error = "released", f"{_DIED} {remains.ended_with} while it ran beside others"
    elif remains.killed is not None or not line.here:
        outcome, error = "released", f"its process was ended: {remains.killed or 'another job brought it down'}"
    if outcome in ("cancelled", "released") and line is not None and line.attempt == claimed.attempt:
        (job,) = store.job_get([claimed.job_id])
        if job is not None and not job.idempotent and job.started_at is not None:
            outcome = "crashed"
    return Abort(
        job_id=claimed.job_id,
        attempt=claimed.attempt,
        outcome=outcome,
        error=error,
        delay=0.0 if outcome == "released" else _CRASH_DELAY,
        begun_after=None if line is None or line.attempt != claimed.attempt else line.begun_after,
    )
