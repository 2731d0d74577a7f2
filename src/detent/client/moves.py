"""Moving one job, over whichever connection the verbs are on."""

from __future__ import annotations

from typing import Any, TypeVar

from detent.client.acting import actor_and_reason
from detent.declare.settings import Settings
from detent.errors import DetentError, InvalidInput, InvalidTransition
from detent.lifecycle.library import JOB
from detent.model import jsondoor
from detent.model.records import Cancelled, Moved
from detent.store.contract import Verbs

__all__ = [
    "cancel_job",
    "check_id",
    "discard_job",
    "force_job",
    "moved",
    "one",
    "reason_needed",
    "retry_job",
    "settle_job",
]

T = TypeVar("T")


def cancel_job(verbs: Verbs, job_id: int, actor: str | None, reason: str | None, settings: Settings) -> Cancelled:
    """Stop a job. `AlreadyCommitted`, `InvalidTransition`, `NotFound`."""
    who, why = actor_and_reason(actor, reason, settings)
    return one(verbs.job_cancel([job_id], who, why)[0])


def retry_job(verbs: Verbs, job_id: int, actor: str | None, reason: str | None, settings: Settings) -> Moved:
    """Bring a job that rests without success back to pending. `InvalidTransition`, `NotFound`."""
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
    who, why = reason_needed(actor, reason, settings, "a reason: an override always has one")
    checked = jsondoor.text(state, field="state", bytes_max=settings.name_max)
    return moved(verbs.job_force(job_id, checked, who, why), "force")


def settle_job(
    verbs: Verbs, job_id: int, done: bool, result: Any, actor: str | None, reason: str | None, settings: Settings
) -> Moved:
    """Record the outcome of a job whose effect is unknown. `NotUnknown`, `InvalidTransition`, `NotFound`."""
    who, why = reason_needed(actor, reason, settings, "a reason: how it was found out")
    if not isinstance(done, bool):
        raise InvalidInput("done", repr(done)[:80], "True or False")
    if result is not None and not done:
        raise InvalidInput("result", repr(result)[:80], "no result of what has not happened")
    text = None
    if result is not None:
        text = jsondoor.encode(result, field="result", size_max=settings.result_max, depth_max=settings.depth_max)
    return moved(verbs.effect_settle(job_id, done, who, why, text), "settle")


def reason_needed(actor: str | None, reason: str | None, settings: Settings, allowed: str) -> tuple[str, str]:
    """Return actor and reason for a change that is never made without a reason. `InvalidInput`."""
    who, why = actor_and_reason(actor, reason, settings)
    if not why:
        raise InvalidInput("reason", repr(reason), allowed)
    return who, why


def one(answer: T | DetentError) -> T:
    """Return the answer, or raise its refusal."""
    if isinstance(answer, DetentError):
        raise answer
    return answer


def moved(answer: Moved | DetentError, trigger: str) -> Moved:
    """Return the answer, or raise its refusal with the states in which that trigger is allowed."""
    if isinstance(answer, InvalidTransition):
        ways = [way for way in JOB.transitions if (way.trigger, way.target) == (trigger, answer.to_state)]
        answer.trigger, answer.sources = trigger, tuple(way.source for way in ways)
    return one(answer)


def check_id(value: int | str, field: str = "job id") -> int:
    """Return an id as a whole number. Text of digits is accepted too, since ids are strings in JSON. `InvalidInput`."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidInput(field, repr(value)[:80], "a whole number below 2^63")
    return value
