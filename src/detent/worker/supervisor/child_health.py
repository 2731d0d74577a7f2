"""Decide from the outside whether a child still controls its jobs. Pure functions over what its board shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from detent.worker.supervisor.board import Line

__all__ = ["DEAF_AFTER", "Attempt", "deaf_at", "deaf_to", "holds_database", "must_end_at", "still_told"]

Attempt = tuple[int, int]
"""A job and the number of its attempt."""

DEAF_AFTER = 2.0
"""Seconds that a child has to end a job whose time is over, before the child counts as deaf."""


def must_end_at(line: Line, told: Mapping[Attempt, float], cancel_grace: float) -> float:
    """Return when the child has to end this job: at its deadline, or a grace period after the child was told to cancel
    this very attempt. Infinity if neither applies."""
    ends = line.deadline or math.inf
    told_at = told.get((line.job_id, line.attempt))
    return ends if told_at is None else min(ends, max(told_at, line.begun_at) + cancel_grace)


def deaf_at(lines: Iterable[Line], told: Mapping[Attempt, float], cancel_grace: float) -> float:
    """Return when the child will count as deaf if it goes on with these jobs; infinity if nothing is to be ended."""
    return min((must_end_at(line, told, cancel_grace) for line in lines), default=math.inf) + DEAF_AFTER


def deaf_to(lines: Iterable[Line], told: Mapping[Attempt, float], cancel_grace: float, now: float) -> Line | None:
    """Return a job that the child should have ended by now and has not: something holds its interpreter or its loop."""
    return next((line for line in lines if now >= must_end_at(line, told, cancel_grace) + DEAF_AFTER), None)


def still_told(
    told: Mapping[Attempt, float], lines: Iterable[Line], cancels: Iterable[Attempt], now: float
) -> dict[Attempt, float]:
    """Return the cancels that a child knows of, each with the time it was first told: those of `cancels` and those told
    before whose attempts still run. A cancel is forgotten when its attempt has ended."""
    running = {(line.job_id, line.attempt) for line in lines}
    return {attempt: at for attempt, at in told.items() if attempt in running} | {
        attempt: told.get(attempt, now) for attempt in cancels
    }


def holds_database(waiting_for: float | None, silent_for: float, backoff: float) -> bool:
    """Return whether a child may keep all writers out: renewals have waited for longer than `backoff` seconds, and for
    as long none of the child's threads has had a turn. Only for databases with a single writer."""
    return waiting_for is not None and waiting_for > backoff and silent_for > backoff
