"""How long an attempt may run if other jobs of its process keep it from its turn."""

from __future__ import annotations

from collections.abc import Mapping

from detent.model.records import Outcome
from detent.worker.child.core import Held
from detent.worker.child.running_attempt import RunningAttempt
from detent.worker.supervisor.board import Board
from detent.worker.supervisor.dead_child import HELD

__all__ = ["Lag", "ending_overdue", "extra_time", "forgive", "overdue", "start_clock"]

_FORGIVEN_MIN = 60.0
"""Seconds for which the process may be held, at least, before the attempt is tried again in a process of its own."""


class Lag:
    """Measures how long a loop that wakes up every `tick` seconds was kept from its turn."""

    def __init__(self, tick: float) -> None:
        self._tick = tick
        self._seen_at = 0.0

    def restart(self, now: float) -> None:
        """Count from now: the loop was at rest until now."""
        self._seen_at = now

    def late(self, now: float) -> float:
        """Return by how many seconds this turn is late; 0 if by less than a tick. The next turn counts from now."""
        late = now - self._seen_at - self._tick
        self._seen_at = now
        return late if late >= self._tick else 0.0


def extra_time(timeout: float, forgiven: float, held_for: float) -> float:
    """Return how much later an attempt's deadline is if its process was held for so long.

    All of that time in general. But an attempt may be the one that holds the process, so no more than its time-out
    again, or a minute if that is longer, is forgiven in all.
    """
    return max(0.0, min(held_for, max(timeout, _FORGIVEN_MIN) - forgiven))


def ending_overdue(timeout: float, forgiven: float, *, idempotent: bool) -> tuple[Outcome, str]:
    """Return how an attempt ends whose deadline has passed, and its error. If no more time can be forgiven, it is not
    known whose fault that is: the attempt is released, to be tried again in a process of its own."""
    if idempotent and forgiven >= max(timeout, _FORGIVEN_MIN):
        return "released", f"{HELD} for {forgiven:.3g} s"
    return "timed_out", f"timed out after {timeout:g} s"


def start_clock(running: RunningAttempt, board: Board, now: float, more: float = 0.0) -> None:
    """Count the time-out from now. Preparing the call has `more` seconds; without them, the function is called now. The
    caller locks both."""
    held, timeout = running.held, running.attempt.task.options.timeout
    if not more:
        held.called_at = now
        board.set_called(held, now - held.claimed_at)
    if timeout is not None:
        running.deadline, running.forgiven = now + timeout + more, 0.0
        board.set_deadline(held, running.deadline)


def overdue(running: RunningAttempt, now: float) -> tuple[Outcome, str] | None:
    """Return how an attempt is to be cut short, and its error; None if it may go on."""
    options = running.attempt.task.options
    if options.timeout is not None and running.deadline and now >= running.deadline:
        return ending_overdue(options.timeout, running.forgiven, idempotent=options.idempotent)
    if running.is_stalled:
        return "timed_out", "stalled: wrote no event for too long"
    if running.cancel_by and now >= running.cancel_by:
        # Begun, not to be repeated blindly, and cut off: how far it came is not known.
        return "cancelled" if options.idempotent else "crashed", "did not stop within the grace period after a cancel"
    return None


def forgive(running: Mapping[Held, RunningAttempt], board: Board, held_for: float, *, cut: int) -> None:
    """Extend the deadlines of jobs whose process was held for so long. `cut` functions go on although their attempts
    have ended. A function that is the only one in its process holds it itself. The caller locks both."""
    if not held_for:
        return
    here = sum(one.here for one in running.values()) + cut
    for held, one in running.items():
        timeout = one.attempt.task.options.timeout
        if timeout is not None and one.deadline and here > one.here:
            extra = extra_time(timeout, one.forgiven, held_for)
            one.forgiven += extra
            one.deadline += extra
            board.set_deadline(held, one.deadline)
