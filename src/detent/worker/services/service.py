"""A service: something that workers do for the database at intervals, besides running jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from detent.model.service_records import Agenda

__all__ = ["Service"]


@dataclass(frozen=True, slots=True)
class Service:
    """A service and when to run it.

    `run` is called every `every` seconds with the time of this process's monotonic clock. If `at` is given, it is
    called only when the time has come that `at` reads from the agenda.

    `alone`: one worker at a time runs it. Two workers at once must be harmless all the same.
    `calm_every`: seconds between two runs while no jobs come or go.
    """

    name: str
    every: float
    run: Callable[[float], object]
    alone: bool = False
    at: Callable[[Agenda], datetime | None] | None = None
    calm_every: float | None = None
