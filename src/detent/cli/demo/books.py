"""What was to be done, how far it is, and whether it was done as promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

from detent.app.detent import Detent
from detent.cli.demo import shop
from detent.declare.task import Call
from detent.lifecycle.library import JOB
from detent.model.records import JobRow, Violation
from detent.testing.stores import plain_connection

__all__ = ["EXPECTED", "Books", "Line", "Progress", "fill", "holders", "look", "open_ledger", "progress"]

EXPECTED = {"photo": 160, "charge": 80, "receipt": 80, "fetch": 80, "report": 4, "poison": 1}
"""How many jobs of each task there are to be in the end; the receipts are sent by the charges."""

ENDS = dict.fromkeys(EXPECTED, "succeeded") | {"poison": "quarantined"}
WRITERS = frozenset({"photo", "charge", "receipt", "fetch"})
"""Those that have a line in the ledger to show for it."""

_LIST_MAX = 10_000


class Progress(NamedTuple):
    """How many jobs are at rest, and of how many; how many are in a worker's hands; how many are dead jobs."""

    at_rest: int
    total: int
    running: int
    dead: int


class Line(NamedTuple):
    """A line of the table at the end: one task."""

    task: str
    jobs: int
    succeeded: int
    dead: int
    attempts: int
    attempts_most: int
    ledger: int


@dataclass(frozen=True)
class Books:
    """The record and the ledger, as they are when all is over."""

    jobs: Sequence[JobRow]
    ledger: Sequence[tuple[int, str]]
    violations: Sequence[Violation]

    def lines(self) -> list[Line]:
        """What became of the jobs of each task."""
        return [self._line(task, [job for job in self.jobs if job.task == task]) for task in EXPECTED]

    def _line(self, task: str, jobs: list[JobRow]) -> Line:
        attempts = [job.attempt for job in jobs]
        return Line(
            task,
            jobs=len(jobs),
            succeeded=sum(job.state == "succeeded" for job in jobs),
            dead=sum(job.state == "quarantined" for job in jobs),
            attempts=sum(attempts),
            attempts_most=max(attempts, default=0),
            ledger=sum(name == task for _, name in self.ledger),
        )

    def faults(self) -> list[str]:
        """Everything that is not as promised; none is as it should be."""
        return [*self._lost(), *self._doubled(), *(f"{one.invariant}: {one.detail}" for one in self.violations)]

    def _lost(self) -> Iterator[str]:
        written = {job_id for job_id, _ in self.ledger}
        there = Counter(job.task for job in self.jobs)
        for task, jobs in EXPECTED.items():
            if there[task] != jobs:
                yield f"{there[task]} jobs of task {task}, and there should be {jobs}"
        for job in self.jobs:
            if job.state != ENDS[job.task]:
                yield f"job {job.id} ({job.task}) is {job.state}, and should be {ENDS[job.task]}"
            elif job.task in WRITERS and job.id not in written:
                yield f"job {job.id} ({job.task}) succeeded, and is not in the ledger"

    def _doubled(self) -> Iterator[str]:
        succeeded = {job.id for job in self.jobs if job.state == "succeeded"}
        for (job_id, task), times in Counter(self.ledger).items():
            if times > 1:
                yield f"job {job_id} ({task}) is in the ledger {times} times"
            if job_id not in succeeded:
                yield f"job {job_id} ({task}) is in the ledger, and did not succeed"


def open_ledger(app: Detent) -> None:
    """An empty table in the same database as the jobs."""
    with closing(plain_connection(app.settings.database_url)) as connection:
        connection.execute(shop.LEDGER)
        connection.commit()


def fill(app: Detent) -> int:
    """Enqueue the whole load, well mixed; how many jobs that is. The receipts come by themselves."""
    calls: list[tuple[float, Call[Any]]] = [(0.0, shop.poison.call())]
    makers: dict[str, Callable[[int], Call[Any]]] = {
        "photo": lambda number: shop.photo.call(number=number),
        "charge": lambda number: shop.charge.call(order=number),
        "fetch": lambda number: shop.fetch.call(number=number),
        "report": lambda _: shop.report.call(),
    }
    for task, make in makers.items():
        calls += [(number / EXPECTED[task], make(number)) for number in range(EXPECTED[task])]
    calls.sort(key=lambda placed: placed[0])
    return len(app.enqueue_many(call for _, call in calls))


def progress(app: Detent) -> Progress:
    """How far it is now."""
    states: Counter[str] = Counter()
    for one in app.jobs.counts():
        states[one.state] += one.jobs
    at_rest = sum(jobs for state, jobs in states.items() if state in JOB.rests)
    return Progress(at_rest, sum(EXPECTED.values()), states["running"], states["quarantined"])


def holders(app: Detent) -> Counter[str]:
    """Which worker holds how many jobs at this moment."""
    attempts = [attempt for job in app.jobs.list(state="running") for attempt in job.executions()]
    return Counter(attempt.worker for attempt in attempts if attempt.outcome is None)


def look(app: Detent) -> Books:
    """Read the record and the ledger, and check every invariant."""
    jobs = [job.row for job in app.jobs.list(limit=_LIST_MAX)]
    with closing(plain_connection(app.settings.database_url)) as connection:
        ledger = connection.execute("SELECT job_id, task FROM ledger ORDER BY job_id").fetchall()
    return Books(jobs, ledger, app.record.verify())
