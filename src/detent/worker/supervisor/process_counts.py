"""What one worker has done since it started, for its metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from detent.worker.supervisor.board import BoardCounters

__all__ = ["ProcessCounts"]


@dataclass(frozen=True, slots=True)
class ProcessCounts:
    """Children that are alive, jobs that run in them, and what they and those before them have done."""

    children: int
    active: int
    counters: BoardCounters
    tally: Counter[str]
