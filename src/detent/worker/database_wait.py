"""Waiting for a database that is not available when a process starts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from detent.errors import (
    DatabaseBusy,
    DatabaseFull,
    DatabaseInaccessible,
    DatabaseMoved,
    DatabaseReadOnly,
    DatabaseUnreachable,
    OutcomeUnknown,
)
from detent.model.clock import Clock
from detent.worker.outage_backoff import OutageBackoff

__all__ = ["wait_for_database"]

T = TypeVar("T")

_RETRY_EVERY = 1.0


def wait_for_database(clock: Clock, ask: Callable[[], T]) -> tuple[T, bool]:
    """Call `ask` until the database answers. Return the answer, and whether the database had to be waited for.

    Logs at most once a second. Errors that waiting does not help are raised at once: a refused login or a missing
    database (`DatabaseInaccessible`), a database that moves or has moved to another one (`DatabaseMoved`), and a
    schema that is missing or does not fit.
    """
    backoff = OutageBackoff(clock, threading.Event(), longest=_RETRY_EVERY)
    while True:
        try:
            answer = ask()
        except (DatabaseInaccessible, DatabaseMoved):
            raise
        except (DatabaseUnreachable, DatabaseBusy, DatabaseFull, DatabaseReadOnly, OutcomeUnknown) as error:
            backoff.failed("starting", error)
            continue
        waited = backoff.away_since is not None
        backoff.worked()
        return answer, waited
