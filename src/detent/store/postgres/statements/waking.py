"""The sign that somebody waits for work, and for how long there was anybody to see it."""

from __future__ import annotations

from detent.store.postgres.statement import Statement

__all__ = ["WHICH", "up_for", "wake_announce", "wake_ring", "which"]

WHICH = """
SELECT extract(epoch FROM pg_postmaster_start_time())::text || '/' ||
       (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""On two connections the same answer: the same database of the same server. It uses nothing of Detent's."""


def wake_announce(seconds: float) -> Statement[None]:
    """Until then, whoever brings work says so."""
    return Statement("SELECT detent.wake_announce_v1(%s::double precision)", (float(seconds),), lambda rows: None)


def wake_ring() -> Statement[None]:
    """Wake whoever listens."""
    return Statement("SELECT pg_notify('detent', '')", (), lambda rows: None, writes=False)


def up_for() -> Statement[float]:
    """Since the server began."""
    return Statement("SELECT detent.up_for_v1()", (), lambda rows: float(rows[0][0]), writes=False)


def which() -> Statement[str]:
    """Which database this is."""
    return Statement(WHICH, (), lambda rows: str(rows[0][0]), writes=False)
