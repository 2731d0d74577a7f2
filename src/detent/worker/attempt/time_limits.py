"""Time limits of attempts whose process was held by another job for a while."""

from __future__ import annotations

from detent.model.records import Outcome

__all__ = ["LoopLag", "end_overdue", "limit_extension"]

_EXTENSION_MIN = 60.0
"""Seconds by which a deadline may be extended in all, at least."""


class LoopLag:
    """Measures how late a loop is that should get a turn every `tick` seconds."""

    def __init__(self, tick: float) -> None:
        self._tick = tick
        self._seen_at = 0.0

    def restart(self, now: float) -> None:
        """Count from now, because the loop was idle until now."""
        self._seen_at = now

    def measure(self, now: float) -> float:
        """Return by how many seconds this turn is late; 0 if by less than a tick. The next turn counts from now."""
        late = now - self._seen_at - self._tick
        self._seen_at = now
        return late if late >= self._tick else 0.0


def limit_extension(timeout: float, extended: float, held_for: float) -> float:
    """Return by how much to extend the deadline of an attempt whose process was held for `held_for` seconds.

    An attempt may itself be the one that holds the process. So all extensions together, `extended` included, are at
    most the time-out once more, or a minute if that is longer.
    """
    return max(0.0, min(held_for, max(timeout, _EXTENSION_MIN) - extended))


def end_overdue(timeout: float, extended: float, *, idempotent: bool) -> tuple[Outcome, str, bool]:
    """Return the outcome and the error of an attempt whose deadline has passed, and whether its job is a suspect.

    If its deadline was extended as far as possible, it is unknown which job held the process: the attempt is released
    and tried again in a process of its own.
    """
    if idempotent and extended >= max(timeout, _EXTENSION_MIN):
        return "released", f"its process was held by another job for {extended:.3g} s", True
    return "timed_out", f"timed out after {timeout:g} s", False
