"""Reads the record for the targets of outgoing webhooks, and enqueues their deliveries.

The targets are declared in the application's code, so a child reads: one child of all workers at a time. If two read at
once, each delivery is still enqueued once.
"""

from __future__ import annotations

import logging

from detent.app.detent import Detent
from detent.errors import DatabaseError
from detent.model.clock import Clock
from detent.store.contract import Store
from detent.webhooks.announcements import Announcements
from detent.worker.critical_thread import start_critical_thread
from detent.worker.outage_backoff import OutageBackoff

__all__ = ["RecordReader"]

log = logging.getLogger("detent.worker")

_SERVICE = "webhooks"
_EVERY = 1.0
_LEASE = 10.0
_AFTER_DEFECT = 30.0


class RecordReader:
    """One thread, if a target asks for what is on record."""

    def __init__(self, app: Detent, store: Store, clock: Clock, backoff: OutageBackoff) -> None:
        self._store = store
        self._clock = clock
        self._backoff = backoff
        self._holder = app.ids.nonce()
        self._announcements = app.announcements
        self._ask_at = float("-inf")
        self._is_ours = False

    def start(self) -> None:
        """Start to read, unless no target is declared."""
        found = self._announcements
        if found is not None and found.reads_record:
            start_critical_thread("webhooks", lambda: self._run(found))

    def _run(self, announcements: Announcements) -> None:
        while True:
            pause = _EVERY
            try:
                if self._take() and announcements.read_record():
                    pause = 0.0
            except DatabaseError as error:
                self._backoff.failed("reading the record for webhooks", error)
            except Exception:
                # A defect here must not stop the jobs of this process.
                log.exception("Reading the record for webhooks failed; trying again.")
                pause = _AFTER_DEFECT
            self._clock.sleep(pause)

    def _take(self) -> bool:
        """Return whether this process reads. Asked twice per lease, because asking writes."""
        now = self._clock.monotonic()
        if now >= self._ask_at:
            self._is_ours = self._store.service_take(_SERVICE, self._holder, _LEASE) is not None
            self._ask_at = now + _LEASE / 2
        return self._is_ours
