"""What both databases share about moving jobs."""

from __future__ import annotations

import msgspec

from detent.errors import InvalidInput, InvalidTransition
from detent.lifecycle.library import JOB, OPS_RUN
from detent.model.ops_records import ops_state

__all__ = ["check_undo", "moved_to", "undeclared"]


def moved_to(queue: str | None, priority: int | None) -> str:
    """Return the metadata of a recorded move: the new queue and priority."""
    new = {"queue": queue, "priority": priority}
    return msgspec.json.encode({name: value for name, value in new.items() if value is not None}).decode()


def undeclared(job_id: int, state: str, to_state: str, run_state: str | None = None) -> InvalidTransition:
    """Return the refusal of a move that is not declared. `run_state` is the state of an ops run in its own
    lifecycle, which decides for it."""
    if run_state is not None:
        to = ops_state(to_state, False)
        return InvalidTransition("ops_run", f"run-{job_id}", run_state, to, OPS_RUN.allowed(run_state))
    return InvalidTransition("job", str(job_id), state, to_state, JOB.allowed(state))


def check_undo(undo: bool, reason: str | None) -> None:
    """Refuse a cancel that undoes nothing and has no reason. `InvalidInput`."""
    if not undo and not reason:
        raise InvalidInput("reason", "nothing", "a reason, because the steps of workflows are not undone")
