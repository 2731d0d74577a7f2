"""The sign that somebody waits for work, and for how long there was anybody to see it."""

from __future__ import annotations

from detent.store.postgres.statements.base import Statement

__all__ = ["up_for", "wake_announce"]


def wake_announce(seconds: float) -> Statement[None]:
    """Until then, whoever brings work says so."""
    return Statement("SELECT detent.wake_announce_v1(%s::double precision)", (float(seconds),), lambda rows: None)


def up_for() -> Statement[float]:
    """Since the server began."""
    return Statement("SELECT detent.up_for_v1()", (), lambda rows: float(rows[0][0]), writes=False)
