"""The sign that somebody waits for work."""

from __future__ import annotations

from detent.store.postgres.statements.base import Statement

__all__ = ["wake_announce"]


def wake_announce(seconds: float) -> Statement[None]:
    """Until then, whoever brings work says so."""
    return Statement("SELECT detent.wake_announce_v1(%s::double precision)", (float(seconds),), lambda rows: None)
