"""Workers whose jobs write to a ledger that shows every effect, and checks of both ledger and database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from detent.testing.stores import plain_connection, table
from tests.faults.tasks import make_app
from tests.processes.worker_processes import Bench, Worker, until

APP = "tests.faults.tasks:app"
NAMES = ("executions", "execution", "job", "lease", "workflow_step")


class Held(NamedTuple):
    """A job in flight."""

    worker: str
    job_id: int
    leased_at: datetime


class Ring(Bench):
    """A bench whose database has a ledger. The ledger has no key, so a second effect shows as a second row."""

    def __init__(self, url: str, directory: Path) -> None:
        super().__init__(url, directory)
        self.app.close()
        self.app = make_app(url)
        self._exits.callback(self.app.close)
        self.app.store.ready()
        with closing(plain_connection(url)) as connection:
            connection.execute("CREATE TABLE ledger (job_id bigint NOT NULL, attempt bigint NOT NULL)")
            connection.commit()

    def __enter__(self) -> Self:
        return self

    @property
    def database(self) -> str:
        """The name of the database, on a server."""
        return self.url.rpartition("/")[2].partition("?")[0]

    def worker(self, *, url: str | None = None, environment: dict[str, str] | None = None, **options: Any) -> Worker:
        """Start a worker; `url` is its own way to the database, where it is not the straight one."""
        before = self._environment
        self._environment = {**before, "DETENT_DATABASE_URL": url or self.url, **(environment or {})}
        try:
            return super().worker(**{"app": APP, **options})
        finally:
            self._environment = before

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows by a plain connection; `{name}` stands for a table or view of Detent's."""
        names = {name: table(self.url, name) for name in NAMES}
        with closing(plain_connection(self.url)) as connection:
            rows: list[tuple[Any, ...]] = connection.execute(sql.format(**names)).fetchall()
            return rows

    def holders(self) -> list[Held]:
        """Every job in flight, with the name of the worker that holds it."""
        return [
            Held(worker, job_id, _time(leased_at))
            for worker, job_id, leased_at in self.ask(
                "SELECT worker, job_id, leased_at FROM {executions} WHERE outcome IS NULL"
            )
        ]

    def ledger(self) -> Counter[int]:
        """How many rows each job has left."""
        return Counter(job_id for (job_id,) in self.ask("SELECT job_id FROM ledger"))

    def attempts(self) -> Counter[str]:
        """How the attempts at all jobs ended."""
        return Counter(dict(self.ask("SELECT outcome, count(*) FROM {execution} GROUP BY outcome")))

    def states(self) -> dict[str, int]:
        return dict(self.ask("SELECT state, count(*) FROM {job} GROUP BY state"))

    def all_done(self, job_ids: Iterable[int], seconds: float = 60.0) -> None:
        """Every job succeeds, with exactly one row in the ledger; nothing else is in it; all invariants hold."""
        wanted = sorted(job_ids)
        until(lambda: self.states().get("succeeded", 0) >= len(wanted), "the success of every job", seconds)
        assert self.states() == {"succeeded": len(wanted)}
        found = self.ledger()
        lost = [job_id for job_id in wanted if not found[job_id]]
        doubled = {job_id: rows for job_id, rows in found.items() if rows > 1}
        assert (lost, doubled) == ([], {})
        assert sorted(found) == wanted
        assert self.is_healthy()


def _time(found: datetime | int) -> datetime:
    """A time as a plain connection gives it: SQLite keeps microseconds since 1970."""
    return found if isinstance(found, datetime) else datetime.fromtimestamp(found / 1e6, UTC)
