"""Figures: how often jobs moved from state to state, and how long that took.

The store returns counts by bucket; `detent.views.figures` computes rates and percentiles from them.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

__all__ = [
    "AttemptFigures",
    "BatchCount",
    "BatchFigures",
    "Durations",
    "Figures",
    "OpsFigures",
    "RateCount",
    "RatePoint",
    "Rates",
    "TaskFigures",
    "TransitionCount",
    "TransitionFigures",
]


class TransitionCount(Struct, frozen=True):
    """Moves of jobs of a task. `outcome` is that of the attempts that they ended, or empty if they ended none.

    Times are in microseconds, each as a sum and a maximum: `held` in the state before (a pending job since it was due),
    `ran` from the call of the function to the end of the attempt, `waited` from when the job was due to its claim.
    `bucket` is a lower bound of how long the function ran, and -1 if it was not called.
    """

    task: str
    from_state: str
    to_state: str
    outcome: str
    bucket: int
    moves: int
    held_us: int
    held_us_max: int
    ran_us: int
    ran_us_max: int
    waited_us: int
    waited_us_max: int


class BatchCount(Struct, frozen=True):
    """Requests to apply a batch; or its runs that ended, with their targets, and how long they took in microseconds."""

    batch: str
    bucket: int
    applies: int
    runs: int
    applied: int
    failed: int
    ran_us: int
    ran_us_max: int


class RateCount(Struct, frozen=True):
    """Moves of jobs to a state in one step of time, which begins at `at`. `outcome` is that of the attempts that they
    ended, or empty if they ended none.

    Times are in microseconds, as a sum and a maximum: how long the function ran; for moves to running, how long the job
    had waited since it was due. `bucket` is a lower bound of the time, and -1 if the function was not called.
    """

    at: datetime
    to_state: str
    outcome: str
    bucket: int
    moves: int
    us: int
    us_max: int


class AttemptFigures(Struct, frozen=True, kw_only=True):
    """Attempts at a task with one outcome, and how many seconds their functions ran: None if none was called."""

    task: str
    outcome: str
    attempts: int
    mean_seconds: float | None
    p50_seconds: float | None
    p95_seconds: float | None
    max_seconds: float | None


class TaskFigures(Struct, frozen=True, kw_only=True):
    """Jobs of a task that ended with an attempt; `failed` counts those that are failed or quarantined. `retries` counts
    moves back to pending, by themselves or by a person, except those of attempts that were given back (released,
    snoozed, throttled, parked)."""

    task: str
    succeeded: int
    failed: int
    success_rate: float | None
    retries: int
    throttled: int


class TransitionFigures(Struct, frozen=True, kw_only=True):
    """How often jobs of a task moved from one state to another, and how many seconds they had been in the state before.
    A pending job counts from when it was due."""

    task: str
    from_state: str
    to_state: str
    moves: int
    mean_seconds: float
    max_seconds: float


class OpsFigures(Struct, frozen=True, kw_only=True):
    """Ops runs that ended, and how many seconds they took from their claim to the end: None if none was claimed."""

    status: str
    runs: int
    mean_seconds: float | None
    max_seconds: float | None


class BatchFigures(Struct, frozen=True, kw_only=True):
    """A batch: requests to apply, runs that ended with their targets, the seconds from a run's first target to its end,
    and retries of targets."""

    batch: str
    applies: int
    runs: int
    applied: int
    failed: int
    success_rate: float | None
    mean_seconds: float | None
    p50_seconds: float | None
    p95_seconds: float | None
    max_seconds: float | None
    retries: int


class Figures(Struct, frozen=True, kw_only=True):
    """Figures of a period: from the beginning of the hour of `since` until `until`."""

    since: datetime
    until: datetime
    tasks: list[TaskFigures]
    attempts: list[AttemptFigures]
    transitions: list[TransitionFigures]
    batches: list[BatchFigures]
    ops: list[OpsFigures]
    ops_success_rate: float | None


class Durations(Struct, frozen=True, kw_only=True):
    """How long things took, in seconds: None if there were none."""

    count: int
    mean_seconds: float | None
    p50_seconds: float | None
    p95_seconds: float | None
    max_seconds: float | None


class RatePoint(Struct, frozen=True, kw_only=True):
    """One step of time, which begins at `at`.

    `moves`: how many jobs moved to each state, except running. `outcomes`: how many attempts ended with each outcome.
    `waited`: how long the jobs of these attempts had been due before they were claimed. `ran`: how long the functions
    ran.
    """

    at: datetime
    moves: dict[str, int]
    outcomes: dict[str, int]
    waited: Durations
    ran: Durations


class Rates(Struct, frozen=True, kw_only=True):
    """Moves of jobs over time: a point for each step, also if nothing moved in it; and the times of the whole period.
    `success_rate` is the share of succeeded jobs among those whose attempt brought them to rest."""

    since: datetime
    until: datetime
    step: str
    points: list[RatePoint]
    waited: Durations
    ran: Durations
    success_rate: float | None
