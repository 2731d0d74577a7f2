"""Endings of attempts that their function did not bring about itself: cut short, released or handed back."""

from __future__ import annotations

from msgspec.structs import replace

from detent.model.records import Abort, Claimed, Finish, Outcome

__all__ = [
    "SHORT",
    "Ending",
    "add_start_time",
    "end_attempt",
    "end_attempt_at_stop",
]

Ending = Finish | Abort | None
"""How an attempt ended; None if there is nothing to write."""

SHORT = 0.001
"""Seconds. The start of a function that succeeds within this time is not recorded: reading the clock and writing the
start would cost more than the difference is worth, and most where jobs are shortest."""


def end_attempt(
    claimed: Claimed,
    outcome: Outcome = "released",
    error: str | None = None,
    delay: float = 0.0,
    *,
    suspect: bool = False,
) -> Abort:
    """Return the ending of an attempt that is over whatever its function still does."""
    return Abort(
        job_id=claimed.job_id, attempt=claimed.attempt, outcome=outcome, error=error, delay=delay, suspect=suspect
    )


def end_attempt_at_stop(claimed: Claimed, *, risky: bool) -> Abort:
    """Return the ending of an attempt that did not finish before its worker stopped.

    A risky attempt has begun and must not be repeated blindly. It is unknown how far it got, so it counts as crashed.
    """
    if risky:
        return end_attempt(claimed, "crashed", "cut off when its worker stopped")
    return end_attempt(claimed)


def add_start_time(ending: Ending, begun_after: float | None, ran_for: float) -> Ending:
    """Return the ending with the time of the call, in seconds after the claim. Short successes get none (`SHORT`)."""
    if ending is None or begun_after is None or (type(ending) is Finish and ran_for < SHORT):
        return ending
    return replace(ending, begun_after=begun_after)
