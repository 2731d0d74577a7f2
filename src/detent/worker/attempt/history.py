"""What is asked of the record before a function is called that must not be repeated blindly."""

from __future__ import annotations

from msgspec import Struct

from detent.declare.task import Task
from detent.errors import DetentError
from detent.model.records import Claimed, ExecutionRow
from detent.store.contract import Store
from detent.worker.supervisor.dead_child import died_with_its_process

__all__ = ["Past", "Unknown", "look_back"]


class Unknown(Struct, frozen=True):
    """Nobody knows whether the effect of attempt `since` has happened. The probe has looked `looks` times since, in
    vain; `cancelled` says that somebody wants the job stopped."""

    since: int
    looks: int
    cancelled: bool


class Past(Struct, frozen=True):
    """What the record says of a job that is about to be called: `suspect` was in a process when it died."""

    suspect: bool = False
    unknown: Unknown | None = None


def look_back(store: Store, claimed: Claimed, task: Task[..., object, object]) -> Past | DetentError:
    """Put the attempt on record as begun where it must not be repeated blindly, and look at those before it.

    The refusal where this worker does not hold the attempt any more.
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
    if options.idempotent:
        return Past(any(map(died_with_its_process, past)))
    unknown = _unknown(store, claimed, past, has_probe=options.probe is not None)
    return Past(unknown is not None or any(map(died_with_its_process, past)), unknown)


def _unknown(store: Store, claimed: Claimed, past: list[ExecutionRow], *, has_probe: bool) -> Unknown | None:
    """What is unknown stays so until a person settles it: a probe that said "not done" is asked again, and says it
    again. Where there is no probe, a person's retry is a decision too."""
    riddles = [execution for execution in past if execution.outcome == "unknown"]
    if not riddles:
        return None
    settled = again = 0
    for line in store.transitions("job", str(claimed.job_id)):
        if line.to_state == "pending" and line.trigger in ("settle", "retry"):
            again = line.attempt
            if line.trigger == "settle" or not has_probe:
                settled = line.attempt
    open_riddles = [execution for execution in riddles if execution.attempt > settled]
    if not open_riddles:
        return None
    looks = sum(1 for execution in open_riddles if not execution.counted and execution.attempt > again)
    (job,) = store.job_get([claimed.job_id])
    return Unknown(open_riddles[0].attempt, looks, job is not None and job.cancel_requested_at is not None)
