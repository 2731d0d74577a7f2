"""What a service is: something that is done every so often for the database, besides jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from detent.model.service_records import Agenda

__all__ = ["Service"]


@dataclass(frozen=True, slots=True)
class Service:
    """`run` is called every `every` seconds with the time by this process's own clock, which only paces; where `at` is
    given, only when the time has come that the agenda gives for it.

    `alone`: by one worker at a time, as far as that can be had; two at once must be harmless all the same.
    `calm_every`: seconds between two times while jobs neither come nor go.
    """

    name: str
    every: float
    run: Callable[[float], object]
    alone: bool = False
    at: Callable[[Agenda], datetime | None] | None = None
    calm_every: float | None = None
