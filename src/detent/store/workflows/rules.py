"""What both databases share about workflows: limits, and the texts that the store itself puts into steps.

The texts are exact, so that both databases record the same: JSON without spaces, times in UTC with microseconds.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from detent.model import json_codec
from detent.model.workflow_records import Arrived, StepKind, WaitOn

__all__ = [
    "CHILDREN_MAX",
    "DEPTH_MAX",
    "GROUPS_MAX",
    "TIME_KINDS",
    "UNREAD_MAX",
    "arrived_again",
    "choice_text",
    "join_text",
    "kind_of",
    "time_in",
    "time_text",
]

TIME_KINDS: tuple[StepKind, ...] = ("sleep", "deadline", "timeout", "token")
"""Steps of these kinds are no progress: a workflow that records nothing else spins."""
UNREAD_MAX = 1000
CHILDREN_MAX = 100_000
GROUPS_MAX = 1000
DEPTH_MAX = 16


def time_text(moment: datetime) -> str:
    """Return a time as the value of a step: `"2026-11-18T13:00:00.000000+00:00"`, with the quotes."""
    return f'"{moment.astimezone(UTC).isoformat(timespec="microseconds")}"'


def time_in(value: str) -> datetime:
    """Return the time that the value of a step holds."""
    return datetime.fromisoformat(json_codec.decode(value, field="value"))


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
