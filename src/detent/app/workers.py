"""`app.workers`, and the handle of a worker."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.handle import Handle
from detent.client.job_verbs import check_id, unwrap
from detent.client.list_page import ListPage, check_limit
from detent.errors import InvalidInput, NotFound
from detent.model.service_records import WorkerRow

__all__ = ["Worker", "WorkerSnapshot", "Workers"]

_ALIVE_WITHIN = 10.0


class WorkerSnapshot(Handle[WorkerRow]):
    """A worker as of its last heartbeat."""

    def __repr__(self) -> str:
        return f"<Worker {self.id} {self.name} {self.state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerSnapshot) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> int:
        """Its number."""
        return self.row.id

    @property
    def name(self) -> str:
        """Its name."""
        return self.row.name

    @property
    def host(self) -> str:
        """The name of its machine."""
        return self.row.host

    @property
    def pid(self) -> int:
        """The process id of its supervisor."""
        return self.row.pid

    @property
    def queues(self) -> tuple[str, ...] | None:
        """The queues that it serves; None if it serves every queue."""
        return self.row.queues

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it knows."""
        return self.row.tasks

    @property
    def versions(self) -> dict[str, tuple[int, ...]]:
        """The versions of workflows that it can continue, by task."""
        return self.row.versions

    @property
    def slots(self) -> int:
        """Maximum number of jobs that it runs at once."""
        return self.row.slots

    @property
    def running(self) -> int:
        """Number of jobs that it holds."""
        return self.row.running

    @property
    def stopping(self) -> bool:
        """Whether it claims no more jobs and is about to end."""
        return self.row.stopping

    @property
    def started_at(self) -> datetime:
        """Time of its first heartbeat."""
        return self.row.started_at

    @property
    def seen_at(self) -> datetime:
        """Time of its last heartbeat."""
        return self.row.seen_at

    @property
    def state(self) -> str:
        """`stopping` if it is about to end, `draining` if it was asked to and does not know yet, otherwise `open`."""
        if self.row.stopping:
            return "stopping"
        return "open" if self.row.drain_requested_at is None else "draining"


class Worker(WorkerSnapshot):
    """Handle of a worker: a snapshot of it, and the verbs on it."""

    def refresh(self) -> Self:
        """Read the worker again, and return this handle. `NotFound` if it has ended."""
        row = self._engine.store.worker_get(self.id)
        if row is None:
            raise NotFound("worker", str(self.id))
        self.row = row
        return self

    def drain(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Ask the worker to end, from any machine: it stops claiming with its next heartbeat, in a second or two,
        finishes its jobs within its `--grace`, hands back the rest, and exits, as after SIGTERM. Asking again is a
        no-op. Return this handle, read again. `NotFound` if it has ended."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        self.row = unwrap(self._engine.store.worker_drain(self.id, *who))
        return self


class Workers:
    """The workers on record."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self, *, within: float = _ALIVE_WITHIN, limit: int = 100, after: str | None = None) -> ListPage[Worker]:
        """List the workers with a heartbeat in the last `within` seconds by id, with the tasks they know and the jobs
        they hold. `.next` of the list is the `after` of the next page. `InvalidInput`."""
        if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within <= 10**9:
            raise InvalidInput("within", repr(within), "a number of seconds")
        most, above = check_limit(limit), 0 if after is None else check_id(after, "after")
        rows = self._engine.store.worker_list(within, above, most)
        return ListPage((Worker(row, self._engine) for row in rows), str(rows[-1].id) if len(rows) == most else None)

    def get(self, worker_id: int | str) -> Worker:
        """Return the handle of a worker that has not ended. `NotFound`."""
        if isinstance(worker_id, str) and not worker_id.isdigit():
            allowed = "the id of a worker, a number. `detent workers list` shows it beside the name"
            raise InvalidInput("worker id", repr(worker_id)[:80], allowed)
        row = self._engine.store.worker_get(check_id(worker_id, "worker id"))
        if row is None:
            raise NotFound("worker", str(worker_id))
        return Worker(row, self._engine)
