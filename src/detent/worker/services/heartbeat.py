"""The heartbeat of a worker: shows that it is alive, and learns what there is to do besides jobs."""

from __future__ import annotations

import logging
import os
import socket
import threading

from msgspec.structs import replace

from detent.errors import SchemaTooNew
from detent.model.service_records import Agenda, WorkerSeen
from detent.store.contract import Store
from detent.worker.options import WorkerOptions
from detent.worker.services.job_activity import JobActivity
from detent.worker.services.service import Service

__all__ = ["Heartbeat"]

log = logging.getLogger("detent.worker")

_EVERY = 1.2
_CALM_EVERY = 2.0
_ANSWER_MAX = 10.0
"""Seconds until a connection that gives no answer is given up."""
_JUMP_MIN = 15.0
"""Seconds. A heartbeat may wait for its answer, so a smaller difference means little."""


class Heartbeat:
    """Writes the worker's state about once a second, and reads the agenda: what there is to do besides jobs."""

    def __init__(self, store: Store, options: WorkerOptions, worker_id: int) -> None:
        self._store = store
        self.activity = JobActivity()
        self.heard: tuple[Agenda, float] | None = None
        self.jumped = threading.Event()
        """Set when the database's clock has advanced further than this machine's since the last heartbeat."""
        self.drain_requested_by: str | None = None
        """Who asked this worker to drain; None if no one did. `drain_reason` is why."""
        self.drain_reason: str | None = None
        self.too_new: SchemaTooNew | None = None
        """Why this release must no longer work with the database: a migration that demands newer code has been
        applied since the worker started."""
        self._seen = WorkerSeen(
            id=worker_id,
            name=options.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=options.queues,
            tasks=(),
            slots=options.slots * options.processes,
        )

    def service(self) -> Service:
        """Return the service: about once a second, by every worker. An idle worker asks the database for little
        else."""
        return Service("heartbeat", _EVERY, self._beat, calm_every=_CALM_EVERY)

    def _beat(self, now: float) -> None:
        with self._store.answering_within(_ANSWER_MAX):
            agenda = self._store.worker_seen(self._seen)
        if self.heard is not None:
            before, before_at = self.heard
            ahead = (agenda.now - before.now).total_seconds() - (now - before_at)
            if ahead > _JUMP_MIN:
                log.warning("The database's clock jumped forward by %.0f s; renewing all leases.", ahead)
                self.jumped.set()
        self.drain_requested_by, self.drain_reason = agenda.drain_requested_by, agenda.drain_reason
        demanded, known = agenda.schema_demanded, self._store.schema_known
        if demanded > known:
            detail = f"a migration demands code that knows schema {demanded}"
            self.too_new = SchemaTooNew(self._store.name, detail, demanded, known)
        self.activity.update(agenda)
        self.heard = (agenda, now)

    @property
    def knows(self) -> tuple[tuple[str, ...], tuple[str, ...] | None, dict[str, tuple[int, ...]]]:
        """The tasks and the queues of this worker (None means every queue), and the versions that it can continue."""
        return self._seen.tasks, self._seen.queues, self._seen.versions

    def set_state(
        self,
        *,
        tasks: tuple[str, ...],
        running: int,
        stopping: bool,
        versions: dict[str, tuple[int, ...]] | None = None,
    ) -> None:
        """Set what the next heartbeats report."""
        self._seen = replace(self._seen, tasks=tasks, running=running, stopping=stopping, versions=versions or {})

    def report_end(self) -> None:
        """Report that the worker ends."""
        self._store.worker_gone(self._seen.id)
