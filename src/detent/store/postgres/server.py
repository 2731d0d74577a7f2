"""Statements about the server: waking waiters, how long it is up, and which database this is."""

from __future__ import annotations

from detent.store.postgres.statement import Statement

__all__ = ["WHICH", "up_for", "wake_announce", "wake_notify", "which"]

WHICH = """
SELECT extract(epoch FROM pg_postmaster_start_time())::text || '/' ||
       (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""Two connections with the same answer are to the same database of the same server. Uses nothing of Detent's schema."""


def wake_announce(seconds: float) -> Statement[None]:
    """Announce that a worker waits: until then, enqueueing notifies it."""
    return Statement("SELECT detent.wake_announce_v1(%s::double precision)", (float(seconds),), lambda rows: None)


def wake_notify() -> Statement[None]:
    """Notify all listeners."""
    return Statement("SELECT pg_notify('detent', '')", (), lambda rows: None, writes=False)


def up_for() -> Statement[float]:
    """Return for how many seconds the server is up."""
    return Statement("SELECT detent.up_for_v1()", (), lambda rows: float(rows[0][0]), writes=False)


def which() -> Statement[str]:
    """Return which database this is."""
    return Statement(WHICH, (), lambda rows: str(rows[0][0]), writes=False)
