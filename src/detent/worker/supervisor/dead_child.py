"""What becomes of the jobs of a child that died: only the job that brought it down uses up an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from detent.errors import DetentError
from detent.model.records import Abort, Aborted, Claimed, JobRow, Outcome
from detent.store.contract import Store
from detent.worker.supervisor.board import BoardEntry
from detent.worker.supervisor.child_health import Attempt, KillCause

__all__ = ["DeadLease", "Death", "DeathCause", "decide_ending", "end_lease"]

DeathCause = KillCause | Literal["itself"]
"""Why a child died: killed by its supervisor, or by itself."""

_CRASH_DELAY = 1.0


@dataclass(frozen=True, slots=True)
class Death:
    """How and when a child ended, and what its board showed then. `why` explains a kill. `cancels` are the attempts
    that the child had been told to cancel."""

    at: float
    ended_with: str
    cause: DeathCause
    why: str = ""
    entries: Mapping[int, BoardEntry] = field(default_factory=dict)
    cancels: frozenset[Attempt] = frozenset()

    @property
    def called_in_process(self) -> int:
        """The number of functions that ran in the child itself."""
        return sum(1 for entry in self.entries.values() if entry.in_process)


@dataclass(frozen=True, slots=True)
class DeadLease:
    """A lease of a dead child."""

    lease_id: int
    death: Death


def end_lease(store: Store, dead: DeadLease, worker: str) -> list[Aborted | DetentError]:
    """End every attempt that is still held under the lease; return what became of each."""
    held = store.claim_find(dead.lease_id)
    committed = [claimed.job_id for claimed in held if claimed.committed]
    if committed:
        store.job_recover(committed)
    open_ones = [claimed for claimed in held if not claimed.committed]
    if not open_ones:
        return []
    ids = [claimed.job_id for claimed in open_ones]
    found = zip(open_ones, store.job_get(ids), store.workflow_get(ids), strict=True)
    aborts = [_make_abort(dead.death, claimed, row, flow is not None) for claimed, row, flow in found]
    return store.job_abort(aborts, worker)


def decide_ending(death: Death, job_id: int, attempt: int) -> tuple[Outcome, str | None, bool]:
    """Return the outcome of an attempt that its child held when it died, its error, and whether its job is a suspect.

    An attempt is used up only if it alone can have been the cause: the only function in a process that died by itself
    or held the database (crashed), or the only one that can have kept the child from ending it in time (timed out). If
    several functions ran in the process, each is released and tried again in a process of its own, where a job can harm
    only itself. An attempt whose function had not been called is released.
    """
    entry = death.entries.get(job_id)
    if entry is None or entry.attempt != attempt:
        return "released", None, False
    if (job_id, attempt) in death.cancels:
        return "cancelled", "did not stop after a cancel, and held its process: the process was ended", False
    if death.cause == "stop":
        return "released", f"its process was ended: {death.why}", False
    is_overdue = bool(entry.deadline) and death.at > entry.deadline and entry.begun_after is not None
    if is_overdue and death.called_in_process == entry.in_process:
        return "timed_out", "ran into its time-out and held its process: the process was ended", False
    if not entry.in_process:
        return "released", f"its process was ended: {death.why or 'another job brought it down'}", False
    if death.called_in_process > 1:
        return "released", f"its process ended with {death.ended_with} while it ran beside others", True
    if death.cause == "deaf":
        return "released", f"its process ended with {death.ended_with} before its own time was over", True
    return "crashed", f"its process ended with {death.ended_with} while it ran", True


def _make_abort(death: Death, claimed: Claimed, job: JobRow | None, is_workflow: bool) -> Abort:
    outcome, error, suspect = decide_ending(death, claimed.job_id, claimed.attempt)
    if outcome == "cancelled" and is_workflow:
        # It may have steps to undo: then another attempt undoes them before the job is cancelled.
        outcome = "released"
    entry = death.entries.get(claimed.job_id)
    if entry is not None and entry.attempt != claimed.attempt:
        entry = None
    if outcome in ("cancelled", "released") and job is not None and not job.idempotent and job.started_at is not None:
        # It has begun and must not be repeated blindly: it is unknown how far it got. Without an entry on the board it
        # has even ended, and how was not written yet.
        outcome = "crashed"
        error = error or f"its process ended with {death.ended_with} before it was on record how the attempt ended"
    return Abort(
        job_id=claimed.job_id,
        attempt=claimed.attempt,
        outcome=outcome,
        error=error,
        delay=0.0 if outcome == "released" else _CRASH_DELAY,
        begun_after=None if entry is None else entry.begun_after,
        suspect=suspect,
    )
