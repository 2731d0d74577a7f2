"""A deadline for all that a thread asks of the server.

A connection can go silent without being closed: a proxy or firewall may still acknowledge every packet, or the server
may be stopped. TCP's time-outs do not notice that, so callers set a deadline here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from detent.model.clock import SystemClock

__all__ = ["answering_within", "no_answer", "seconds_left"]

_REAL = SystemClock()


class _Local(threading.local):
    until: float | None = None


_LOCAL = _Local()


@contextmanager
def answering_within(seconds: float) -> Iterator[None]:
    """Set a deadline for this thread inside the block. An earlier outer deadline stays in force."""
    outer = _LOCAL.until
    until = _REAL.monotonic() + seconds
    _LOCAL.until = until if outer is None else min(until, outer)
    try:
        yield
    finally:
        _LOCAL.until = outer


def seconds_left() -> float | None:
    """Return the seconds until this thread's deadline, not below zero; None if it has none."""
    return None if (until := _LOCAL.until) is None else max(0.0, until - _REAL.monotonic())


def no_answer() -> psycopg.OperationalError:
    """Return the error for a connection that missed the deadline. Like every lost connection it has no SQLSTATE: the
    outcome of the statement is unknown."""
    return psycopg.errors.ConnectionTimeout("the server did not answer in time; the connection was given up")
