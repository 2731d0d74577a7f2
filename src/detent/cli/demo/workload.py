"""The demo's workload: the jobs to do, the progress, and the check that each was done as promised."""

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

__all__ = [
    "EXPECTED",
    "WRITERS",
    "Outcome",
    "Progress",
    "TaskOutcome",
    "create_ledger",
    "enqueue_all",
    "read_outcome",
    "read_progress",
    "running_by_worker",
]

EXPECTED = {"photo": 160, "charge": 80, "receipt": 80, "fetch": 80, "report": 4, "poison": 1}
"""The number of jobs of each task at the end. The receipts are sent by the charges."""

END_STATES = dict.fromkeys(EXPECTED, "succeeded") | {"poison": "quarantined"}
WRITERS = frozenset({"photo", "charge", "receipt", "fetch"})
"""The tasks that write a line into the ledger."""

_LIST_MAX = 10_000


class Progress(NamedTuple):
    """The number of jobs that have ended, of all jobs, of running jobs and of dead jobs."""

    ended: int
    total: int
    running: int
    dead: int


class TaskOutcome(NamedTuple):
    """The outcome of one task: a line of the table at the end."""

    task: str
    jobs: int
    succeeded: int
    dead: int
    attempts: int
    attempts_max: int
    ledger: int


@dataclass(frozen=True)
class Outcome:
    """The record and the ledger at the end of the demo."""

    jobs: Sequence[JobRow]
    ledger: Sequence[tuple[int, str]]
    violations: Sequence[Violation]

    def by_task(self) -> list[TaskOutcome]:
        """Return the outcome of each task."""
        return [self._of_task(task, [job for job in self.jobs if job.task == task]) for task in EXPECTED]

    def _of_task(self, task: str, jobs: list[JobRow]) -> TaskOutcome:
        attempts = [job.attempt for job in jobs]
        return TaskOutcome(
            task,
            jobs=len(jobs),
            succeeded=sum(job.state == "succeeded" for job in jobs),
            dead=sum(job.state == "quarantined" for job in jobs),
            attempts=sum(attempts),
            attempts_max=max(attempts, default=0),
            ledger=sum(name == task for _, name in self.ledger),
        )

    def faults(self) -> list[str]:
        """Return everything that is not as promised; an empty list if all is well."""
        return [*self._lost(), *self._doubled(), *(f"{one.invariant}: {one.detail}" for one in self.violations)]

    def _lost(self) -> Iterator[str]:
        written = {job_id for job_id, _ in self.ledger}
        found = Counter(job.task for job in self.jobs)
        for task, jobs in EXPECTED.items():
            if found[task] != jobs:
                yield f"found {found[task]} jobs of task {task}; expected {jobs}"
        for job in self.jobs:
            if job.state != END_STATES[job.task]:
                yield f"job {job.id} ({job.task}) is {job.state}; expected {END_STATES[job.task]}"
            elif job.task in WRITERS and job.id not in written:
                yield f"job {job.id} ({job.task}) succeeded, but is not in the ledger"

    def _doubled(self) -> Iterator[str]:
        succeeded = {job.id for job in self.jobs if job.state == "succeeded"}
        for (job_id, task), times in Counter(self.ledger).items():
            if times > 1:
                yield f"job {job_id} ({task}) is in the ledger {times} times"
            if job_id not in succeeded:
                yield f"job {job_id} ({task}) is in the ledger, but did not succeed"


def create_ledger(app: Detent) -> None:
    """Create an empty ledger in the same database as the jobs."""
    with closing(plain_connection(app.settings.database_url)) as connection:
        connection.execute(shop.LEDGER)
        connection.commit()


def enqueue_all(app: Detent) -> int:
    """Enqueue all jobs but the receipts, with the tasks evenly mixed. Return their number."""
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


def read_progress(app: Detent) -> Progress:
    """Return the progress now."""
    states: Counter[str] = Counter()
    for one in app.jobs.counts():
        states[one.state] += one.jobs
    ended = sum(jobs for state, jobs in states.items() if state in JOB.rests)
    return Progress(ended, sum(EXPECTED.values()), states["running"], states["quarantined"])


def running_by_worker(app: Detent) -> Counter[str]:
    """Return how many jobs each worker runs now."""
    attempts = [attempt for job in app.jobs.list(state="running") for attempt in job.executions()]
    return Counter(attempt.worker for attempt in attempts if attempt.outcome is None)


def read_outcome(app: Detent) -> Outcome:
    """Read the record and the ledger, and check every invariant."""
    jobs = [job.row for job in app.jobs.list(limit=_LIST_MAX)]
    with closing(plain_connection(app.settings.database_url)) as connection:
        ledger = connection.execute("SELECT job_id, task FROM ledger ORDER BY job_id").fetchall()
    return Outcome(jobs, ledger, app.record.verify())
