"""Decide from outside whether a child still controls its jobs: pure functions over what its board shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from detent.worker.supervisor.board import BoardEntry

__all__ = [
    "DEAF_AFTER",
    "Attempt",
    "KillCause",
    "Observation",
    "Verdict",
    "find_deaf_at",
    "find_unheard",
    "judge_child",
    "keep_cancels",
    "must_end_at",
]

Attempt = tuple[int, int]
"""The id of a job and the number of its attempt."""

KillCause = Literal["deaf", "database", "stop"]
"""Why a supervisor kills a child: it did not end a job in time, it held the database, or the worker stops."""

DEAF_AFTER = 2.0
"""Seconds that a child has to end a job whose time is over, before the child counts as deaf."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a supervisor knows about a child at the time `now`.

    `cancels` are the attempts that the child was told to cancel, each with the time it was first told. `silent_for`
    says for how many seconds none of the child's threads has had a turn. `renewals_waited` says for how many seconds
    renewals have waited for the database; None if they do not wait, or if the database has more than one writer.
    """

    now: float
    entries: Sequence[BoardEntry]
    cancels: Mapping[Attempt, float]
    silent_for: float
    renewals_waited: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """That a child has to be killed, and why. `job_id` is the job that it did not end, if that is the reason."""

    cause: KillCause
    why: str
    job_id: int | None = None


def judge_child(seen: Observation, *, cancel_grace: float, held_up_max: float) -> Verdict | None:
    """Return why the child has to be killed; None if it may go on.

    - Deaf: it did not end a job within `DEAF_AFTER` seconds after the job's time was over, or after a cancel and its
      grace period. Something holds its interpreter or its loop.
    - Hung while it holds the database: renewals have waited, and all of its threads were silent, for longer than
      `held_up_max` seconds. A function that holds the interpreter while another thread of its process writes stops
      every worker on a database with a single writer.
    """
    if (entry := find_unheard(seen.entries, seen.cancels, cancel_grace, seen.now)) is not None:
        return Verdict("deaf", f"job {entry.job_id} was not ended in time", entry.job_id)
    waited = seen.renewals_waited
    if waited is not None and waited > held_up_max and seen.silent_for > held_up_max:
        return Verdict("database", "it held the database while its interpreter was held")
    return None


def must_end_at(entry: BoardEntry, cancels: Mapping[Attempt, float], cancel_grace: float) -> float:
    """Return when the child has to end this job: at its deadline, or a grace period after the child was told to cancel
    this very attempt. Infinity if neither applies."""
    deadline = entry.deadline or math.inf
    told_at = cancels.get((entry.job_id, entry.attempt))
    return deadline if told_at is None else min(deadline, max(told_at, entry.begun_at) + cancel_grace)


def find_deaf_at(entries: Iterable[BoardEntry], cancels: Mapping[Attempt, float], cancel_grace: float) -> float:
    """Return when the child will count as deaf if it goes on with these jobs; infinity if no job has to end."""
    return min((must_end_at(entry, cancels, cancel_grace) for entry in entries), default=math.inf) + DEAF_AFTER


def find_unheard(
    entries: Iterable[BoardEntry], cancels: Mapping[Attempt, float], cancel_grace: float, now: float
) -> BoardEntry | None:
    """Return a job that the child should have ended by now; None if there is none."""
    return next((entry for entry in entries if now >= must_end_at(entry, cancels, cancel_grace) + DEAF_AFTER), None)


def keep_cancels(
    cancels: Mapping[Attempt, float], entries: Iterable[BoardEntry], new: Iterable[Attempt], now: float
) -> dict[Attempt, float]:
    """Return the cancels that a child knows of, each with the time it was first told: `new` ones, and earlier ones
    whose attempts still run. A cancel is forgotten when its attempt has ended."""
    running = {(entry.job_id, entry.attempt) for entry in entries}
    return {attempt: at for attempt, at in cancels.items() if attempt in running} | {
        attempt: cancels.get(attempt, now) for attempt in new
    }
