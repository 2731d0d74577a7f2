"""How an attempt ends that its function did not bring to an end."""

from __future__ import annotations

import asyncio

from detent.model.records import Abort, Finish, Outcome
from detent.worker.core import Held

__all__ = ["cut_ending", "ending_of"]


def cut_ending(held: Held, outcome: Outcome = "released", error: str | None = None, delay: float = 0.0) -> Abort:
    """This attempt is over, whatever its function does; handed back unless said otherwise."""
    claimed = held.claimed
    return Abort(job_id=claimed.job_id, attempt=claimed.attempt, outcome=outcome, error=error, delay=delay)


def ending_of(task: asyncio.Task[Finish | Abort | None]) -> Finish | Abort | None:
    """What an attempt on the loop gave; None where it was cut short, and somebody else has said how it ended."""
    return None if task.cancelled() else task.result()
