"""The verbs on one job, on any connection: cancel, retry, discard, force, settle, replace, debounce."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar

from msgspec.structs import replace

from detent.client.actor import actor_and_reason
from detent.declare.enqueue import EnqueueOptions, new_job
from detent.declare.settings import Settings
from detent.declare.task import Call, Task
from detent.errors import DetentError, InvalidInput, InvalidTransition, KeyConflict, NotFound
from detent.lifecycle.library import JOB
from detent.model import json_codec
from detent.model.ids import Ids
from detent.model.records import Cancelled, Enqueued, JobRow, Moved, NewJob
from detent.store.contract import Store, Verbs

__all__ = [
    "cancel_job",
    "cancel_reason",
    "check_id",
    "debounced",
    "discard_job",
    "force_job",
    "moved",
    "reason_needed",
    "replace_job",
    "retry_job",
    "settle_job",
    "unwrap",
]

T = TypeVar("T")

_DEAD = ("quarantined", "failed")
_DEBOUNCE_ACTOR = "debounce"
_DEBOUNCE_ROUNDS_MAX = 10
_PATH_MAX = 1000


def cancel_job(
    verbs: Verbs, job_id: int, undo: bool, actor: str | None, reason: str | None, settings: Settings
) -> Cancelled:
    """Cancel a job. `AlreadyCommitted`, `InvalidTransition`, `NotFound`, `InvalidInput`."""
    who, why = cancel_reason(undo, actor, reason, settings)
    return unwrap(verbs.job_cancel([job_id], who, why, undo=undo)[0])


def cancel_reason(undo: bool, actor: str | None, reason: str | None, settings: Settings) -> tuple[str, str | None]:
    """Return who cancels and why. A cancel that does not undo the steps of workflows needs a reason. `InvalidInput`."""
    if not isinstance(undo, bool):
        raise InvalidInput("undo", repr(undo)[:80], "True or False")
    if undo:
        return actor_and_reason(actor, reason, settings)
    return reason_needed(actor, reason, settings, "a reason: steps that are not undone need one")


def retry_job(verbs: Verbs, job_id: int, actor: str | None, reason: str | None, settings: Settings) -> Moved:
    """Bring a failed, quarantined or cancelled job back to pending. `InvalidTransition`, `NotFound`."""
    who, why = actor_and_reason(actor, reason, settings)
    return moved(verbs.job_retry([job_id], who, why)[0], "retry")


def discard_job(verbs: Verbs, job_id: int, actor: str | None, reason: str | None, settings: Settings) -> Moved:
    """Give up a quarantined or failed job. `InvalidTransition`, `NotFound`."""
    who, why = actor_and_reason(actor, reason, settings)
    return moved(verbs.job_discard([job_id], who, why)[0], "discard")


def force_job(
    verbs: Verbs, job_id: int, state: str, actor: str | None, reason: str | None, settings: Settings
) -> Moved:
    """Move a job along a transition declared as `force`. `InvalidTransition`, `NotFound`, `InvalidInput`."""
    who, why = reason_needed(actor, reason, settings, "a reason: every override needs one")
    checked = json_codec.text(state, field="state", bytes_max=settings.name_max)
    return moved(verbs.job_force(job_id, checked, who, why), "force")


def settle_job(
    verbs: Verbs,
    job_id: int,
    done: bool,
    result: Any,
    actor: str | None,
    reason: str | None,
    settings: Settings,
    *,
    step: str | None = None,
) -> Moved:
    """Record the outcome of a job whose effect is unknown, or of a step of a workflow. `NotUnknown`,
    `InvalidTransition`, `NotFound`, `InvalidInput`."""
    who, why = reason_needed(actor, reason, settings, "a reason: how you know the outcome")
    if not isinstance(done, bool):
        raise InvalidInput("done", repr(done)[:80], "True or False")
    if result is not None and not done:
        raise InvalidInput("result", repr(result)[:80], "a result only together with done=True")
    text = None
    if result is not None:
        most = settings.result_max if step is None else settings.step_max
        text = json_codec.encode(result, field="result", size_max=most, depth_max=settings.depth_max)
    if step is not None:
        path = json_codec.text(step, field="step", bytes_max=_PATH_MAX).removesuffix("~undo")
        return moved(verbs.step_settle(job_id, path, done, who, why, text), "settle")
    if done and verbs.workflow_get([job_id])[0] is not None:
        found = f"none, but job {job_id} is a workflow"
        raise InvalidInput("step", found, "the name of the step that was done; its error names it")
    return moved(verbs.effect_settle(job_id, done, who, why, text), "settle")


def replace_job(
    store: Store,
    ids: Ids,
    task: Task[..., Any, Any] | None,
    job_id: int,
    payload: Mapping[str, Any] | str,
    who: str,
    why: str,
    settings: Settings,
) -> int:
    """Enqueue a job with corrected arguments and discard the old one, in one transaction. Return the id of the new job.

    The arguments of a job never change, since its attempts, its key and its effect key stand for them. So a correction
    is a new job, and each of the two names the other on record. If the application knows the `task`, the arguments must
    fit its signature (`InvalidArguments`).
    """
    (number,), nonce = ids.take(1), ids.nonce()

    def work(verbs: Verbs) -> Enqueued:
        row = _replaceable(verbs, job_id)
        job = replace(_corrected(row, task, payload, settings), id=number, nonce=nonce)
        made = unwrap(verbs.job_enqueue([job])[0])
        discarded = unwrap(verbs.job_discard([job_id], who, f"replaced by job {made.job_id}: {why}")[0])
        if not discarded.changed:
            raise _not_dead(job_id, discarded.state)
        return made

    return store.together(work).job_id


def _replaceable(verbs: Verbs, job_id: int) -> JobRow:
    """Return the job. It must be dead or failed, belong to no run, and have had no effect."""
    (row,) = verbs.job_get([job_id])
    if row is None:
        raise NotFound("job", str(job_id))
    if row.state not in _DEAD:
        raise _not_dead(job_id, row.state)
    if row.run_id is not None:
        found = f"job {job_id}, which is part of run {row.run_id}"
        raise InvalidInput("job id", found, "a job of no run; start another run with other input")
    attempts = verbs.job_executions(job_id)
    if attempts and attempts[-1].outcome == "unknown":
        found = f"job {job_id}, whose effect may have happened"
        raise InvalidInput(
            "job id", found, f"a job without an effect; settle this one first: detent jobs settle {job_id}"
        )
    return row


def _not_dead(job_id: int, state: str) -> InvalidTransition:
    return InvalidTransition("job", str(job_id), state, "cancelled", JOB.allowed(state), "discard", _DEAD)


def _corrected(
    row: JobRow, task: Task[..., Any, Any] | None, payload: Mapping[str, Any] | str, settings: Settings
) -> NewJob:
    """Return the new job: a copy of the old one with the new arguments, and with what its task derives from them."""
    limits = {"size_max": settings.payload_max, "depth_max": settings.depth_max}
    if isinstance(payload, str):
        text = json_codec.check_text(payload, field=row.task, **limits)
    else:
        text = json_codec.encode(dict(payload), field=row.task, **limits)
    before = {} if row.metadata is None else json_codec.decode(row.metadata, field="metadata")
    metadata = json_codec.encode({**before, "replaces": str(row.id)}, field="metadata", size_max=settings.metadata_max)
    if task is not None:
        task.decode(text)
        sending = EnqueueOptions(tenant=row.tenant, queue=row.queue, priority=row.priority)
        made = new_job(Call(task, text), sending, settings=settings)
    elif not text.startswith("{"):
        raise InvalidInput("payload", text[:80], "a JSON object: the arguments by name")
    else:
        made = NewJob(
            id=0,
            task=row.task,
            payload=text,
            nonce=0,
            fingerprint="",
            tenant=row.tenant,
            queue=row.queue,
            priority=row.priority,
            attempts_max=row.attempts_max,
            dead_letter=row.dead_letter,
            idempotent=row.idempotent,
            limit_key=row.limit_key,
            cost=row.cost,
        )
    return replace(
        made, metadata=metadata, correlation_id=row.correlation_id or str(row.id), traceparent=row.traceparent
    )


def debounced(verbs: Verbs, item: NewJob, seconds: float) -> Enqueued | DetentError:
    """Enqueue a job that is due in `seconds`, and cancel the pending one with the same key, on record. Call it inside a
    transaction.

    The payload of a job never changes, so a later call makes a new job. A job that a worker has claimed is left alone.
    """
    item = replace(item, due_at=verbs.now() + timedelta(seconds=seconds))
    answer: Enqueued | DetentError
    for _ in range(_DEBOUNCE_ROUNDS_MAX):
        (answer,) = verbs.job_enqueue([item])
        match answer:
            case Enqueued(created=False) | KeyConflict() if answer.job_id != item.id:
                before = answer.job_id
            case _:
                return answer
        # A move to its own queue locks the job. A claim that has begun finishes first, and releases the key.
        (found,) = verbs.job_move([before], None, None, _DEBOUNCE_ACTOR)
        if isinstance(found, Moved):
            verbs.job_cancel([before], _DEBOUNCE_ACTOR, f"replaced by job {item.id}")
    return answer


def reason_needed(actor: str | None, reason: str | None, settings: Settings, allowed: str) -> tuple[str, str]:
    """Return actor and reason for a change that requires a reason. `InvalidInput`."""
    who, why = actor_and_reason(actor, reason, settings)
    if not why:
        raise InvalidInput("reason", repr(reason), allowed)
    return who, why


def unwrap(answer: T | DetentError) -> T:
    """Return the answer, or raise its refusal."""
    if isinstance(answer, DetentError):
        raise answer
    return answer


def moved(answer: Moved | DetentError, trigger: str) -> Moved:
    """Return the answer, or raise its refusal with the states in which that trigger is allowed."""
    if isinstance(answer, InvalidTransition):
        ways = [way for way in JOB.transitions if (way.trigger, way.target) == (trigger, answer.to_state)]
        answer.trigger, answer.sources = trigger, tuple(way.source for way in ways)
    return unwrap(answer)


def check_id(value: int | str, field: str = "job id") -> int:
    """Return an id as a whole number. Text of digits is accepted too, since ids are strings in JSON. `InvalidInput`."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20 and int(value) < 2**63:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidInput(field, repr(value)[:80], "a whole number below 2^63")
    return value
