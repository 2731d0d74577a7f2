"""Starting while the database is away: wait for it, and say so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from detent.errors import DatabaseBusy, DatabaseFull, DatabaseReadOnly, DatabaseUnreachable, NoWayIn, OutcomeUnknown
from detent.model.clock import Clock
from detent.worker.outage_backoff import OutageBackoff

__all__ = ["wait_for_database"]

T = TypeVar("T")

_LOOK_EVERY = 1.0


def wait_for_database(clock: Clock, ask: Callable[[], T]) -> tuple[T, bool]:
    """What the database answers, however long it takes to come up, and whether it had to be waited for.

    Says so at most once a second. What waiting does not help is raised at once: a login that is refused, a place that
    is not there (`NoWayIn`), a schema that is missing or does not fit.
    """
    backoff = OutageBackoff(clock, threading.Event(), longest=_LOOK_EVERY)
    while True:
        try:
            answer = ask()
        except NoWayIn:
            raise
        except (DatabaseUnreachable, DatabaseBusy, DatabaseFull, DatabaseReadOnly, OutcomeUnknown) as error:
            backoff.failed("starting", error)
            continue
        waited = backoff.away_since is not None
        backoff.worked()
        return answer, waited
