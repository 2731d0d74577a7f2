"""What the record says about earlier attempts, read before a function is called that must not be repeated blindly."""

from __future__ import annotations

from msgspec import Struct

from detent.declare.task import Task
from detent.errors import DetentError
from detent.model.records import Claimed, ExecutionRow
from detent.store.contract import Store

__all__ = ["AttemptHistory", "UnknownEffect", "is_suspect", "read_history"]


class UnknownEffect(Struct, frozen=True):
    """It is unknown whether attempt `since` had its effect. The probe was asked `probes` times since without a clear
    answer. `cancelled` says that a cancel of the job was requested."""

    since: int
    probes: int
    cancelled: bool


class AttemptHistory(Struct, frozen=True):
    """What matters about earlier attempts. A `suspect` was in a process that died, and may have caused that."""

    suspect: bool = False
    unknown: UnknownEffect | None = None


def read_history(store: Store, claimed: Claimed, task: Task[..., object, object]) -> AttemptHistory | DetentError:
    """Record that the attempt begins if it must not be repeated blindly, and return the history of its job.

    Returns the refusal if this worker no longer holds the attempt.
    """
    job_id, attempt, options = claimed.job_id, claimed.attempt, task.options
    if options.probe is not None:
        answer: object = store.effect_begin(job_id, attempt, "probe")
    elif not options.idempotent:
        (answer,) = store.job_start([(job_id, attempt)])
    else:
        answer = None
    if isinstance(answer, DetentError):
        return answer
    past = [execution for execution in store.job_executions(job_id) if execution.attempt < attempt]
    suspect = any(map(is_suspect, past))
    if options.idempotent:
        return AttemptHistory(suspect)
    unknown = _find_unknown(store, claimed, past, has_probe=options.probe is not None)
    return AttemptHistory(suspect or unknown is not None, unknown)


def is_suspect(execution: ExecutionRow) -> bool:
    """Return whether the attempt was in a process that died or was held. Its job may be the cause, so the job is tried
    again in a process of its own."""
    return execution.outcome == "crashed" or bool(execution.suspect)


def _find_unknown(store: Store, claimed: Claimed, past: list[ExecutionRow], *, has_probe: bool) -> UnknownEffect | None:
    """Return the oldest effect that is still unknown.

    An effect stays unknown until a person settles it: a probe that answered "not done" is asked again by the next
    attempt. If the task has no probe, a retry by a person settles it too.
    """
    unknown = [execution for execution in past if execution.outcome == "unknown"]
    if not unknown:
        return None
    settled = retried = 0
    for line in store.transitions("job", str(claimed.job_id)):
        if line.to_state == "pending" and line.trigger in ("settle", "retry"):
            retried = line.attempt
            if line.trigger == "settle" or not has_probe:
                settled = line.attempt
    unsettled = [execution for execution in unknown if execution.attempt > settled]
    if not unsettled:
        return None
    probes = sum(1 for execution in unsettled if not execution.counted and execution.attempt > retried)
    (job,) = store.job_get([claimed.job_id])
    return UnknownEffect(unsettled[0].attempt, probes, job is not None and job.cancel_requested_at is not None)
