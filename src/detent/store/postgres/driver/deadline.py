"""How long a thread waits for the server's answer before it gives the connection up.

A connection can go silent without being closed: a proxy or a firewall that still acknowledges every packet, a server
that is stopped. TCP's own time-outs do not see that, so a caller with a deadline of its own sets one here.
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
    """Give this thread a deadline for all that it asks of a server inside the block. An outer deadline that is earlier
    stays in force."""
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
    """Return the error for a connection that missed the deadline. It carries no SQLSTATE, like every lost connection:
    what became of the statement is not known."""
    return psycopg.errors.ConnectionTimeout("the server did not answer in time; the connection was given up")
