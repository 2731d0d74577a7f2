"""How an attempt ends that its function did not bring to an end."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from detent.model.records import Abort, Finish, Outcome
from detent.worker.child.core import Held

__all__ = ["SHORT", "cut_ending", "ending_of", "stop_ending", "with_start"]

SHORT = 0.001
"""Seconds. A function that succeeds in less began when it ended, for the record: to tell the two apart would cost more
than the difference is worth, and would cost most where jobs are shortest."""


def cut_ending(held: Held, outcome: Outcome = "released", error: str | None = None, delay: float = 0.0) -> Abort:
    """This attempt is over, whatever its function does; handed back unless said otherwise."""
    claimed = held.claimed
    return Abort(job_id=claimed.job_id, attempt=claimed.attempt, outcome=outcome, error=error, delay=delay)


def stop_ending(held: Held, *, risky: bool) -> Abort:
    """Return the ending of an attempt that did not finish before its worker stopped. A risky one has begun and must not
    be repeated blindly: how far it came is not known."""
    return cut_ending(held, "crashed", "cut off when its worker stopped") if risky else cut_ending(held)


def with_start(held: Held, ending: Finish | Abort | None, now: float) -> Finish | Abort | None:
    """The same ending with the time at which the function was called, if it was."""
    if ending is None or held.called_at is None or (type(ending) is Finish and now - held.called_at < SHORT):
        return ending
    return replace(ending, begun_after=held.begun_after)


def ending_of(task: asyncio.Task[Finish | Abort | None]) -> Finish | Abort | None:
    """What an attempt on the loop gave; None where it was cut short, and somebody else has said how it ended."""
    return None if task.cancelled() else task.result()
