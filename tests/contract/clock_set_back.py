"""Set the clock of a store back, which its own interface never does: the clock of a machine may be."""

from __future__ import annotations

from datetime import timedelta

from detent.model.clock import TurnableClock
from detent.testing.stores import StoreClock, TableClock

__all__ = ["set_back"]


def set_back(clock: StoreClock, seconds: float) -> None:
    """Set the clock back by that many seconds."""
    turnable = clock._clock if isinstance(clock, TableClock) else clock
    assert isinstance(turnable, TurnableClock)
    turnable._now -= timedelta(seconds=seconds)
    if isinstance(clock, TableClock):
        clock._write()
