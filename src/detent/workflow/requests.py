"""What an operation of a workflow asks for while it runs, and the exception that ends an attempt that waits.

An operation is a generator: it yields requests and is sent their answers. So each operation is written once; plain and
async functions have drivers of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from detent.model.workflow_records import NewStep, NewWait, WaitOn

__all__ = [
    "CallFunction",
    "Do",
    "Operation",
    "ParkAttempt",
    "Pause",
    "PendingWait",
    "ReplayEnded",
    "Request",
    "Suspend",
    "Transact",
    "Write",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call a function of the user; answered with what it returns."""

    path: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Transact:
    """Call a function of the user with a transaction, and record `step(value)` in the same transaction; answered with
    the `StepRecorded`."""

    path: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    step: Callable[[Any], NewStep]


@dataclass(frozen=True, slots=True)
class Write:
    """Write steps, or look at a wait, together with what other workflows write; answered item by item."""

    items: tuple[NewStep | NewWait, ...]


@dataclass(frozen=True, slots=True)
class Do:
    """Call a function that waits for the database; answered with what it returns."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for a short time in the slot."""

    seconds: float


@dataclass(frozen=True, slots=True)
class PendingWait:
    """A wait that has not ended: what it waits for, until when, and the words for people."""

    on: tuple[WaitOn, ...]
    until: Any
    words: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """Wait until the attempt ends as parked. It has no answer: `ParkAttempt` is raised instead."""

    wait: PendingWait


Request: TypeAlias = CallFunction | Transact | Write | Do | Pause | Suspend
Operation: TypeAlias = Generator[Request, Any, T]


class ParkAttempt(BaseException):
    """Ends the attempt of a workflow that waits. Functions must not catch it; `except Exception` does not."""


class ReplayEnded(BaseException):
    """Ends the replay of a function whose steps are being undone: it has come to something that is not on record."""
