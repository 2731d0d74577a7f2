"""The verbs around the jobs, as one statement each."""

from __future__ import annotations

from detent.model.service_records import WorkerRow, WorkerSeen
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statements import keeping

__all__ = ["PostgresKeeping"]


class PostgresKeeping:
    """The contract's words hold."""

    _session: Session

    def worker_seen(self, seen: WorkerSeen) -> None:
        """One row of its own."""
        self._session.run(keeping.worker_seen(seen))

    def worker_gone(self, worker_id: int) -> None:
        """Its row goes."""
        self._session.run(keeping.worker_gone(worker_id))

    def worker_list(self, within: float) -> list[WorkerRow]:
        """By name and id."""
        return self._session.run(keeping.worker_list(within))

    def service_take(self, name: str, holder: int, seconds: float) -> int | None:
        """One compare-and-set."""
        return self._session.run(keeping.service_take(name, holder, seconds))

    def service_drop(self, name: str, holder: int) -> None:
        """Expired from now on."""
        self._session.run(keeping.service_drop(name, holder))
