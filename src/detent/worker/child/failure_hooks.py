"""Calls the application's hooks for failed jobs, on threads of their own, so that a slow hook delays nothing else, and
has ends of jobs announced to the targets of outgoing webhooks.

The ending of a failed attempt puts the failure on a list in the database, whether a child, a supervisor or the reaper
writes that ending. A child takes failures from the list, calls the hooks, and then removes them. So no failure is lost,
and hooks are called once for each. They are called again only if the process died, or could not reach the database for
a minute, before it could remove the failure.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

from detent.app.detent import Detent
from detent.errors import DatabaseError
from detent.model.clock import Clock
from detent.store.contract import Store
from detent.worker.critical_thread import start_critical_thread
from detent.worker.outage_backoff import OutageBackoff

__all__ = ["FailureHooks"]

_BATCH = 100
_TERM = 60.0
"""Seconds until another process may take a failure that was taken and not removed."""
_UNENDED_TERM = 2.0
"""Seconds until it is seen whether a job that is to be cancelled has ended."""
_KEPT_MAX = 600.0
"""Maximum number of seconds for which failures are kept from other processes while one hook runs."""
_REMOVE_EVERY = 0.1
"""Seconds after which failures whose hooks have run are removed from the list."""

_Failure = tuple[int, int]


class FailureHooks:
    """One thread takes failures from the list, another one runs the hooks. Safe from any thread."""

    def __init__(self, app: Detent, store: Store, clock: Clock, backoff: OutageBackoff) -> None:
        self._app = app
        self._store = store
        self._clock = clock
        self._backoff = backoff
        self._changed = threading.Condition()
        self._announcements = app.announcements
        self._asked = 0
        self._served = 0
        self._rest: Sequence[_Failure] = ()
        self._calls = ThreadPoolExecutor(max_workers=1, thread_name_prefix="detent-hook")
        start_critical_thread("hooks", self._serve)

    def look(self) -> None:
        """Look at the list now: there may be new failures."""
        with self._changed:
            self._asked += 1
            self._changed.notify_all()

    def finish(self, seconds: float) -> None:
        """Call the hooks for the failures on the list, for at most `seconds`, and leave the rest to other processes."""
        self.look()
        with self._changed:
            mine = self._asked
            done = self._changed.wait_for(lambda: self._served >= mine, seconds)
        if not done:
            with suppress(DatabaseError):
                self._store.failure_report_keep(self._rest, 0)

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._served < self._asked)
                asked = self._asked
            try:
                if self._announcements is not None:
                    self._announcements.announce_ops_runs()
                while ends := self._store.failure_report_take(sorted(self._app.tasks), _BATCH, _TERM):
                    if self._announcements is not None:
                        # First, because hooks may be slow. Repeated if the ends are taken again: a no-op then.
                        unended = self._announcements.announce_ends(ends)
                        self._store.failure_report_keep(unended, _UNENDED_TERM)
                        ends = [end for end in ends if end not in unended]
                    self._handle(ends)
            except DatabaseError as error:
                self._backoff.failed("calling failure hooks", error)
                continue
            with self._changed:
                self._served = asked
                self._changed.notify_all()

    def _handle(self, failures: Sequence[_Failure]) -> None:
        if not self._app.hears_failures:
            self._store.failure_report_done(failures)
            return
        done: list[_Failure] = []
        removed_at = self._clock.monotonic()
        for number, failure in enumerate(failures):
            self._rest = failures[number + 1 :]
            self._call(failure, [*done, *failures[number:]])
            done.append(failure)
            if not self._rest or self._clock.monotonic() - removed_at >= _REMOVE_EVERY:
                self._remove(done)
                done, removed_at = [], self._clock.monotonic()

    def _call(self, failure: _Failure, kept: Sequence[_Failure]) -> None:
        """Call the hooks for a failure, and keep `kept` from other processes while they run."""
        began_at = self._clock.monotonic()
        call = self._calls.submit(self._app.tell_failure, *failure)
        while wait([call], _TERM / 3).not_done:
            if self._clock.monotonic() - began_at < _KEPT_MAX:
                with suppress(DatabaseError):
                    self._store.failure_report_keep(kept, _TERM)

    def _remove(self, done: Sequence[_Failure]) -> None:
        """Remove failures from the list, and retry until it works: otherwise the hooks would be called again."""
        while True:
            try:
                self._store.failure_report_done(done)
                return
            except DatabaseError as error:
                self._backoff.failed("calling failure hooks", error)
