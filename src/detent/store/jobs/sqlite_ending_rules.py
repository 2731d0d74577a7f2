"""How an attempt that did not succeed ends on SQLite: the rules of `detent.store.contract`, without I/O.

differs: on PostgreSQL the function `attempt_abort` has them.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from detent.model.ops_records import OPS_TASK
from detent.model.records import Abort, Outcome
from detent.store.sqlite.verb_base import Job, micros

__all__ = ["End", "UnfinishedUndo", "abort", "count_anew", "give_back"]

_MAY_BE_UNKNOWN = ("expired", "crashed", "timed_out")
_GIVEN_BACK = ("released", "snoozed", "throttled", "parked")


class End(NamedTuple):
    """An attempt that ends without success, and the next state of its job."""

    job: Job
    worker: str
    at: int
    outcome: Outcome
    error: str | None
    state: str
    due_at: int
    spared: int
    dead_reason: str | None
    expires_at: int | None
    suspect: bool


class UnfinishedUndo(NamedTuple):
    """An undo that is not finished, of the `own` steps or those of an `other` job; None if there is none. And whether
    the attempt has recorded anything, and whether a requested cancel waits until the steps are undone."""

    of: str | None
    progressed: bool
    waits: bool

    def goes_on(self, outcome: Outcome) -> bool:
        """Whether the job is tried again although it has no attempt left."""
        return self.of is not None and self.progressed and outcome in _MAY_BE_UNKNOWN


def give_back(job: Job, item: Abort, worker: str, now: int) -> End:
    """Apply rule 1 of the contract for an earlier attempt that has committed."""
    at = max(now, job.last_at)
    return End(
        job, worker, at, "released", item.error, "pending", at, job.spared + 1, None, job.expires_at, item.suspect
    )


def abort(job: Job, item: Abort, worker: str, now: int, undo: UnfinishedUndo, *, free: bool = False) -> End:
    """Apply the first of rules 2 to 6 of the contract that fits. `free`: it expired, and rule 4 does not count it.
    An undo that is not finished goes on, whatever ended the attempt, if it has undone something."""
    at = max(now, job.last_at)
    if item.outcome == "cancelled" and (job.cancel_requested_at is None or undo.waits):
        item = replace(item, outcome="released")
    if item.begun_after is not None and job.leased_at is not None:
        known_at = at if job.started_at is None else job.started_at
        begun_at = min(known_at, job.leased_at + int(item.begun_after * 1_000_000))
        job = job._replace(started_at=max(job.leased_at, begun_at))
    outcome, spared, reason = item.outcome, job.spared, None
    used = job.attempt - job.spared
    expires_at = job.expires_at
    free |= outcome in _GIVEN_BACK
    if outcome == "unknown" or (outcome in _MAY_BE_UNKNOWN and not job.idempotent and job.started_at is not None):
        asked = job.effect_evidence == "probe" and not item.fatal
        if asked and (outcome == "unknown" or used <= job.attempts_max):
            # An effect that may have happened must not expire unseen.
            state, spared, expires_at = "pending", spared + (outcome == "unknown"), None
            outcome = "unknown"
        else:
            outcome, state, reason = "unknown", "quarantined", "unknown"
    elif job.effect_evidence == "marker" and _would_rest(job, item, used, free):
        outcome, state, reason = "unknown", "quarantined", "unknown"
    elif (job.cancel_requested_at is not None and not undo.waits) or _is_stale(job, outcome):
        state = "cancelled"
    elif free:
        state, spared = "pending", spared + 1
    elif (item.fatal or used >= job.attempts_max) and not undo.goes_on(outcome):
        state = "quarantined" if job.dead_letter or undo.of is not None else "failed"
        reason = "undo failed" if undo.of is not None else "fatal" if item.fatal else "attempts used up"
    else:
        state = "pending"
    due_at = at + micros(item.delay) if state == "pending" else job.due_at
    return End(job, worker, at, outcome, item.error, state, due_at, spared, reason, expires_at, item.suspect)


def count_anew(job: Job) -> Job:
    """Return a job whose attempt counts as the first one."""
    return job._replace(spared=max(job.spared, job.attempt - 1))


def _is_stale(job: Job, outcome: Outcome) -> bool:
    """Return whether an ops run was claimed and never started."""
    return job.task == OPS_TASK and outcome == "expired" and job.started_at is None


def _would_rest(job: Job, item: Abort, used: int, free: bool) -> bool:
    """Return whether rule 3 or 5 would end the job."""
    if job.cancel_requested_at is not None:
        return True
    return not free and (item.fatal or used >= job.attempts_max)
