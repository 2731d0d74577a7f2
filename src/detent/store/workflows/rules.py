"""What both databases share about workflows: limits, and the texts that the store itself puts into steps.

The texts are exact, so that both databases record the same: JSON without spaces, times in UTC with microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from detent.errors import DetentError, InvalidInput, NotFound, NotUnknown, UndoRefused
from detent.model import json_codec
from detent.model.records import Moved
from detent.model.workflow_records import Arrived, StepKind, WaitOn
from detent.store.jobs.move_rules import undeclared

__all__ = [
    "CHILDREN_MAX",
    "DEPTH_MAX",
    "GROUPS_MAX",
    "TIME_KINDS",
    "UNDONE",
    "UNREAD_MAX",
    "arrived_again",
    "choice_text",
    "join_text",
    "kind_of",
    "scope_of",
    "settled",
    "time_in",
    "time_text",
    "too_deep",
    "undo_refused",
]

TIME_KINDS: tuple[StepKind, ...] = ("sleep", "deadline", "timeout", "token")
"""Steps of these kinds are no progress: a workflow that records nothing else spins."""
UNDONE = "~undone"
"""The path of the record that says that all steps are undone."""
UNREAD_MAX = 1000
CHILDREN_MAX = 100_000
GROUPS_MAX = 1000
DEPTH_MAX = 16


def scope_of(path: str) -> str:
    """Return the scope that a step is in, by its path; empty outside of scopes."""
    return path.rpartition("/")[0]


def time_text(moment: datetime) -> str:
    """Return a time as the value of a step: `"2026-11-18T13:00:00.000000+00:00"`, with the quotes."""
    return f'"{moment.astimezone(UTC).isoformat(timespec="microseconds")}"'


def time_in(value: str) -> datetime:
    """Return the time that the value of a step holds."""
    return datetime.fromisoformat(json_codec.decode(value, field="value"))


def too_deep() -> InvalidInput:
    """Return the refusal of a child below the lowest level of a tree."""
    return InvalidInput(
        "spawn", f"a child {DEPTH_MAX + 1} levels below the root of its tree", f"at most {DEPTH_MAX} levels"
    )


def join_text(succeeded: int, failed: int, dead: int) -> str:
    """Return the value of the step that waited for a group of children."""
    return f'{{"succeeded":{succeeded},"failed":{failed},"dead":{dead}}}'


def choice_text(n: int | None, value: str) -> str:
    """Return the value of a step that says which of several waits ended first; None: none of them in time."""
    return f'{{"n":{"null" if n is None else n},"value":{value}}}'


def kind_of(on: WaitOn | None) -> StepKind:
    """Return the kind of the step that ends a wait; None if its time is over."""
    if on is None:
        return "timeout"
    return "signal" if on.kind == "signal" else "join"


def arrived_again(job_id: int, attempt: int, kind: StepKind, value: str | None, done_at: datetime) -> Arrived:
    """Return the answer to a wait whose outcome is on record."""
    n: int | None = None if kind == "timeout" else 0
    if kind == "choice" and value is not None:
        chosen: dict[str, Any] = json_codec.decode(value, field="value")
        n = chosen["n"]
    return Arrived(job_id, attempt, n, kind, value, done_at)


def undo_refused(job_id: int, answer: str, detail: str | None) -> DetentError:
    """Return why the steps of a job cannot be undone by another one."""
    match answer:
        case "gone":
            return NotFound("job", str(job_id))
        case "undo":
            return UndoRefused(job_id, f"it undoes job {detail} itself", "a workflow can be undone, an undo cannot")
        case "rests":
            return UndoRefused(
                job_id,
                f"it is {detail}",
                f"cancel it (detent jobs cancel {job_id}): that undoes its steps, unless its workflow has "
                f'undo="on_request"; then undo it when it has ended',
            )
        case "undone":
            return UndoRefused(job_id, "it has undone them itself", "there is nothing left to undo")
        case "stopped":
            return UndoRefused(
                job_id,
                f"it is undoing them itself and has stopped at step {detail!r}",
                f"mend the cause and retry it, or settle that step: detent jobs settle {job_id} --step {detail}",
            )
        case "unknown":
            return UndoRefused(
                job_id,
                "it is unknown whether one of them has had its effect",
                f"settle it: detent jobs settle {job_id}",
            )
        case _:
            return UndoRefused(
                job_id, "none of them has an undo", "declare one with the step: Step('charge', undo=refund)"
            )


def settled(
    job_id: int, path: str, state: str, dead_reason: str | None, is_settled: bool, steps: Sequence[str] | None
) -> Moved | DetentError:
    """Return the answer to the settlement of a step. `steps` are those that can be settled; None if the job is no
    workflow that waits for one."""
    if is_settled:
        return Moved(str(job_id), "pending", True)
    if state != "quarantined":
        return undeclared(job_id, state, "pending")
    if steps is None:
        return NotUnknown(job_id, dead_reason)
    names = " or ".join(map(repr, steps)) or "none: no step is unknown"
    return InvalidInput("step", repr(path)[:80], names)
