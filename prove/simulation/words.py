"""Calls of the store in words, for the story of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from detent.errors import DetentError
from detent.model.records import Aborted, Finished, Reaped

__all__ = ["described"]

_TELLS_MAX = 160
_Call = Callable[[Any, Any], str]
"""Takes the arguments, and the answer."""


def described(name: str, args: Any, kwargs: Any, answer: Any) -> str:
    """Return what a call has done; nothing if that does not matter to a story."""
    if name in _READS:
        return ""
    if name in _WORDS:
        return _WORDS[name](args, answer)
    given = ", ".join([*(_shown(one) for one in args), *(f"{key}={_shown(value)}" for key, value in kwargs.items())])
    return f"{name}({given[:_TELLS_MAX]}) -> {_shown(answer)[:_TELLS_MAX]}"


def _shown(value: Any) -> str:
    return f"<{value.__qualname__}>" if callable(value) and hasattr(value, "__qualname__") else repr(value)


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(part for part in parts if part)


def _claimed(_: Any, answer: Any) -> str:
    return f"claims {', '.join(f'job {one.job_id} (attempt {one.attempt})' for one in answer)}" if answer else ""


def _ended(_: Any, answer: Any) -> str:
    """Tell how attempts ended, and what was refused."""
    if isinstance(answer, Reaped):
        gone = f"takes expired leases away: jobs {list(answer.aborted)} lose their attempt" if answer.aborted else ""
        kept = f"jobs {list(answer.recovered)} had committed, and succeed" if answer.recovered else ""
        return _joined((gone, kept))
    return _joined(_end(one) for one in answer) if isinstance(answer, list) else ""


def _end(one: Any) -> str:
    match one:
        case Finished():
            return f"job {one.job_id} succeeds (attempt {one.attempt})"
        case Aborted():
            return f"attempt {one.attempt} of job {one.job_id} ends as {one.outcome}; the job is {one.state}"
        case DetentError():
            return f"it is refused: {one}"
        case _:
            return ""


def _renewed(_: Any, answer: Any) -> str:
    cancels = [f"job {job_id}" for one in answer for job_id, _ in one.cancel_requested]
    return f"learns that {', '.join(cancels)} is to be cancelled" if cancels else ""


def _started(args: Any, answer: Any) -> str:
    return _joined(
        f"it is refused: {one}" if isinstance(one, DetentError) else f"begins attempt {attempt} of job {job_id}"
        for (job_id, attempt), one in zip(args[0], answer, strict=True)
    )


def _recorded(args: Any, answer: Any) -> str:
    return _joined(
        f"it is refused: {one}"
        if isinstance(one, DetentError)
        else f"records the step {item.path!r} of job {item.job_id}"
        for item, one in zip(args[0], answer, strict=True)
    )


def _looked(args: Any, answer: Any) -> str:
    return _joined(
        f"job {item.job_id} waits: {type(one).__name__.lower()}" for item, one in zip(args[0], answer, strict=True)
    )


def _moved(_: Any, answer: Any) -> str:
    """Refusals are told by the person who gets them."""
    return _joined("" if isinstance(one, DetentError) else repr(one) for one in answer)


def _sent(args: Any, answer: Any) -> str:
    return _joined(
        f"the signal {item.name!r} to job {item.job_id} is "
        + (f"refused: {one}" if isinstance(one, DetentError) else f"stored as {one.seq}" if one.created else "known")
        for item, one in zip(args[0], answer, strict=True)
    )


_READS = frozenset(
    {
        *("claim_find", "job_get", "job_details", "job_executions", "transitions", "workflow_get", "workflow_load"),
        *("workflow_load_many", "verify_step", "limit_close", "queue_pause", "queue_resume", "job_enqueue"),
    }
)
"""Calls that change nothing, and those of a person, who says what they are."""
_WORDS: dict[str, _Call] = {
    "job_claim": _claimed,
    "job_finish": _ended,
    "job_abort": _ended,
    "job_recover": _ended,
    "together": _ended,
    "lease_renew": _renewed,
    "job_promote": lambda _, answer: f"{answer} waiting jobs are due" if answer else "",
    "effect_begin": lambda args, answer: (
        f"it is refused: {answer}" if isinstance(answer, DetentError) else f"begins attempt {args[1]} of job {args[0]}"
    ),
    "job_start": _started,
    "step_record": _recorded,
    "wait_look": _looked,
    "workflow_park": lambda args, _: _joined(f"parks job {item.job_id}" for item in args[0]),
    "workflow_spawn": lambda args, _: f"job {args[0].step.job_id} spawns {args[0].total} children",
    "signal_send": _sent,
    "job_cancel": _moved,
    "job_retry": _moved,
}
