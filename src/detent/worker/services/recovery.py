"""Stops silent jobs: jobs that have written no event for too long (R1).

A renewed lease shows that a process lives, not that its job makes progress. If the queue allows it, a worker stops the
silent jobs that it holds itself, so that no job is taken away from a process that still runs it:

- `stalled` (begun, and no event for a while): the attempt times out and is used up, and the job runs again.
- `stale` (claimed, and not begun for a while): the job is handed back, and no attempt is used up.

In other queues a person looks at the list and decides. The queue says after how long; a task may override it. An ops
run is held by a script, which no worker can stop, and has a single attempt: a silent one is cancelled.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from datetime import datetime

from detent.model.ops_records import OPS_TASK
from detent.model.service_records import Agenda, SilentRow
from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["Recovery", "build_ops_recovery_service"]

log = logging.getLogger("detent.worker")

_EVERY = 5.0
_OPS_EVERY = 10.0
_BATCH = 500


class Recovery:
    """Finds the silent jobs of this worker, for its supervisor to stop. Safe from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._found: list[SilentRow] = []
        self.leases: Sequence[int] = ()
        """The leases that this worker holds."""

    def service(self) -> Service:
        """Return the service: every five seconds, by every worker, if a queue allows recovery."""
        return Service("recovery", _EVERY, self.run, at=_allowed)

    def run(self, _now: float) -> None:
        """Find the silent jobs that this worker holds."""
        leases = self.leases
        if not leases:
            return
        for queue in self._store.recovery_list():
            found = self._store.job_silent(queue.queue, queue.stale_after, queue.stalled_after, _BATCH, leases)
            with self._lock:
                self._found += found

    def take(self) -> list[SilentRow]:
        """Take the jobs to stop that were found since the last call."""
        with self._lock:
            found, self._found = self._found, []
        return found


def build_ops_recovery_service(store: Store) -> Service:
    """Return the service that cancels silent ops runs: every ten seconds, by one worker."""

    def run(_now: float) -> None:
        for queue in store.recovery_list():
            for row in store.job_silent(queue.queue, queue.stale_after, queue.stalled_after, _BATCH):
                if row.task == OPS_TASK:
                    log.warning("Ops run %d is %s since %s; cancelling it.", row.job_id, row.kind, row.since)
                    store.job_cancel([row.job_id], "recovery", row.kind)

    return Service("ops_recovery", _OPS_EVERY, run, alone=True, at=_allowed)


def _allowed(agenda: Agenda) -> datetime | None:
    return agenda.now if agenda.recovery else None
