"""What becomes of the jobs of a child that died: the job that brought it down is charged, no other is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from detent.errors import DetentError
from detent.model.records import Abort, Aborted, Claimed, ExecutionRow, Outcome
from detent.store.contract import Store
from detent.worker.supervisor.board import Line
from detent.worker.supervisor.child_health import Attempt

__all__ = ["HELD", "Cause", "Death", "Remains", "died_with_its_process", "end_lease", "ending_after"]

Cause = Literal["itself", "deaf", "database", "stop"]
"""Why a child died: by itself, or killed because it did not end a job in time, held the database, or had to stop."""

HELD = "its process was held by another job"
_CRASH_DELAY = 1.0
_DIED = "its process ended with"


def died_with_its_process(execution: ExecutionRow) -> bool:
    """Return whether the attempt was in a process that died or was held. The job may be the one to blame, so it is
    tried again in a process of its own."""
    return execution.outcome == "crashed" or (
        execution.outcome == "released" and (execution.error or "").startswith((_DIED, HELD))
    )


@dataclass(frozen=True, slots=True)
class Death:
    """How and when a child ended, and what its board showed then. `why` explains a kill. `told` are the attempts that
    the child had been told to cancel."""

    at: float
    ended_with: str
    cause: Cause
    why: str = ""
    lines: Mapping[int, Line] = field(default_factory=dict)
    told: frozenset[Attempt] = frozenset()

    @property
    def called_here(self) -> int:
        """The number of functions that ran in the child itself."""
        return sum(1 for line in self.lines.values() if line.here)


@dataclass(frozen=True, slots=True)
class Remains:
    """A lease of a dead child."""

    lease_id: int
    death: Death


def end_lease(store: Store, remains: Remains, worker: str) -> list[Aborted | DetentError]:
    """End what is still held under the lease; return what became of it."""
    aborts: list[Abort] = []
    for claimed in store.claim_find(remains.lease_id):
        if claimed.committed:
            store.job_recover([claimed.job_id])
        else:
            aborts.append(_abort(store, remains.death, claimed))
    return store.job_abort(aborts, worker) if aborts else []


def ending_after(death: Death, job_id: int, attempt: int) -> tuple[Outcome, str | None]:
    """Return the outcome of an attempt that its child held when it died, and its error.

    An attempt is charged only if it alone can have been the cause: the only function in a process that died by itself
    or held the database (crashed), or the only one that can have kept the child from ending it in time (timed out). If
    several functions ran in the process, each is released and tried again in a process of its own, where only the one
    to blame comes to harm. An attempt whose function had not been called is released.
    """
    line = death.lines.get(job_id)
    if line is None or line.attempt != attempt:
        return "released", None
    if (job_id, attempt) in death.told:
        return "cancelled", "did not stop after a cancel, and held its process: the process was ended"
    if death.cause == "stop":
        return "released", f"its process was ended: {death.why}"
    is_overdue = bool(line.deadline) and death.at > line.deadline and line.begun_after is not None
    if is_overdue and death.called_here == line.here:
        return "timed_out", "ran into its time-out and held its process: the process was ended"
    if not line.here:
        return "released", f"its process was ended: {death.why or 'another job brought it down'}"
    if death.called_here > 1:
        return "released", f"{_DIED} {death.ended_with} while it ran beside others"
    if death.cause == "deaf":
        return "released", f"{_DIED} {death.ended_with} before its own time was over"
    return "crashed", f"{_DIED} {death.ended_with} while it ran"


def _abort(store: Store, death: Death, claimed: Claimed) -> Abort:
    outcome, error = ending_after(death, claimed.job_id, claimed.attempt)
    line = death.lines.get(claimed.job_id)
    if line is None or line.attempt != claimed.attempt:
        line = None
    elif outcome in ("cancelled", "released"):
        # Begun, not to be repeated blindly, and cut off: how far it came is not known.
        (job,) = store.job_get([claimed.job_id])
        if job is not None and not job.idempotent and job.started_at is not None:
            outcome = "crashed"
    return Abort(
        job_id=claimed.job_id,
        attempt=claimed.attempt,
        outcome=outcome,
        error=error,
        delay=0.0 if outcome == "released" else _CRASH_DELAY,
        begun_after=None if line is None else line.begun_after,
    )
