"""The verbs of workers, and of the services that they share."""

from __future__ import annotations

from typing import Protocol

from detent.errors import DetentError, NotFound
from detent.model.service_records import Agenda, WorkerRow, WorkerSeen
from detent.store.verb import verb

__all__ = ["WorkerVerbs"]


class WorkerVerbs(Protocol):
    """Workers and services."""

    @verb("worker")
    def worker_seen(self, seen: WorkerSeen) -> Agenda:
        """Record that a worker is alive. Return what there is to do besides jobs, who asked the worker to drain, and
        which schema the code of a worker must know: a migration may have come since it started.
        The first call adds the worker to the list and deletes workers not seen for a day. No decision about a job
        depends on it: leases decide."""
        ...

    @verb("worker")
    def worker_gone(self, worker_id: int) -> None:
        """Remove a worker that has ended from the list."""
        ...

    @verb("viewer")
    def worker_list(self, within: float, after_id: int = 0, limit: int = 1000) -> list[WorkerRow]:
        """Return up to `limit` workers seen in the last `within` seconds, by id, with ids above `after_id`."""
        ...

    @verb("viewer")
    def worker_get(self, worker_id: int) -> WorkerRow | None:
        """Return a worker, None if it is not on the list."""
        ...

    @verb("admin", NotFound)
    def worker_drain(self, worker_id: int, actor: str, reason: str | None = None) -> WorkerRow | DetentError:
        """Ask a worker to stop claiming, finish its jobs and end; it learns of it with its next heartbeat. Recorded. A
        worker that was asked before is left as it is. `NotFound`."""
        ...

    # -- services: one worker at a time ------------------------------------------------------------------------

    @verb("worker")
    def service_take(self, name: str, holder: int, seconds: float) -> int | None:
        """Take or keep a service for `seconds` from now. Return the term; None if another worker has it.

        The holder keeps its term. After the time has run out, any worker may take it, which starts a new term. Terms
        only grow, so a holder that slept sees that another worker had the service in between.
        """
        ...

    @verb("worker")
    def service_drop(self, name: str, holder: int) -> None:
        """Give up a service at once. A no-op for a worker that does not hold it."""
        ...
