"""The work that a bad disk is tried with: jobs with commit blocks, and workflows with steps and transactions.

Whatever was acknowledged is noted on the disk at that moment. `check` says what of it does not hold in a database.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from detent import Context, Retry
from detent.client.job import Job
from detent.declare.workflow_context import WorkflowContext
from detent.errors import DetentError, NotADatabase, SchemaMissing
from detent.testing.harness import Harness
from detent.testing.stores import plain_connection
from prove.figure import Tally

__all__ = ["LEDGER", "Life", "Promise", "check"]

LEDGER = "CREATE TABLE ledger (job_id INTEGER NOT NULL, what TEXT NOT NULL)"
_INSERT = "INSERT INTO ledger VALUES (:job_id, :what)"
_PATIENT = Retry(1000, base=1)
_CALLS_MAX = 60
"""How often one call is repeated. Faults end sooner."""
_UNCLEAR = (NotADatabase, SchemaMissing)
"""Errors that would be wrong: the database is one, and its schema is there."""


class Promise(NamedTuple):
    """What was acknowledged: a job (its key), an effect in the ledger, or a step (its name) that is on record."""

    kind: Literal["job", "effect", "step"]
    job_id: int
    what: str


@dataclass
class Life:
    """Some jobs from beginning to end, through every error. `note` gets what was acknowledged."""

    note: Callable[[Promise], None]
    tally: Tally
    story: str
    """How to repeat it."""
    jobs: int = 3
    calls: Counter[tuple[int, str]] = field(default_factory=Counter)
    """How often each step was called."""
    kept: set[tuple[int, str]] = field(default_factory=set)
    """Steps whose record was acknowledged."""
    errors: list[DetentError] = field(default_factory=list)

    def declare(self, harness: Harness) -> None:
        """Declare the task and the workflow."""

        @harness.app.task(name="pay", retry=_PATIENT)
        def pay(ctx: Context) -> None:
            with ctx.commit() as tx:
                tx.execute(_INSERT, {"job_id": ctx.job_id, "what": "paid"})
            self.note(Promise("effect", ctx.job_id, "paid"))

        def reserve(job_id: int) -> str:
            if (job_id, "reserve") in self.kept:
                self._say("doubled", f"step reserve of job {job_id} was on record, and was called again")
            self.calls[job_id, "reserve"] += 1
            return "reserved"

        def book(tx: Any, job_id: int) -> None:
            tx.execute(_INSERT, {"job_id": job_id, "what": "booked"})

        @harness.app.workflow(name="order", retry=_PATIENT)
        def order(ctx: WorkflowContext) -> None:
            ctx.step("reserve", reserve, ctx.job_id)
            self.kept.add((ctx.job_id, "reserve"))
            self.note(Promise("step", ctx.job_id, "reserve"))
            ctx.transact("book", book, ctx.job_id)
            self.note(Promise("effect", ctx.job_id, "booked"))
            ctx.sleep(60)

    def live(self, harness: Harness) -> None:
        """Enqueue the jobs, one after the other, and work until all is done."""
        for n in range(self.jobs):
            kind = "order" if n % 2 else "pay"
            job: Job[Any] | None = self.insist(lambda k=kind, n=n: self._enqueue(harness, k, f"{k}{n}"))  # type: ignore[misc]
            if job is not None:
                self.note(Promise("job", job.id, f"{kind}{n}"))
            if n % 2:
                self.insist(lambda: harness.work())
        self.finish(harness)

    def finish(self, harness: Harness) -> None:
        """Work until all is done, leases that nobody holds any more included."""
        self.insist(lambda: harness.work(skip=True))
        harness.clock.advance(harness.lease + 1)
        self.insist(lambda: harness.work(skip=True))

    def insist(self, act: Callable[[], Any]) -> Any:
        """Repeat a call until it succeeds. Every error must be one of Detent's that fits a disk that fails."""
        for _ in range(_CALLS_MAX):
            try:
                return act()
            except DetentError as error:
                self.errors.append(error)
                if isinstance(error, _UNCLEAR):
                    self._say("wrong", f"an unclear error: {error!r}: {error}")
            except (sqlite3.Error, OSError, AssertionError) as error:
                self._say("wrong", f"an error that is none of Detent's: {error!r}")
        self._say("stuck", f"{_CALLS_MAX} calls failed; the last error: {self.errors[-1:]}")
        return None

    @staticmethod
    def _enqueue(harness: Harness, kind: str, key: str) -> Job[Any]:
        return harness.app.enqueue(harness.app.find_task(kind).call(), key=key)

    def _say(self, outcome: str, what: str) -> None:
        setattr(self.tally, outcome, getattr(self.tally, outcome) + 1)
        self.tally.stories.append(f"{self.story}: {what}")


def check(harness: Harness, promises: Iterable[Promise], tally: Tally, story: str, *, ended: bool) -> None:
    """Compare a database with what was acknowledged. `ended`: all jobs must have come to their end."""

    def say(outcome: str, what: str) -> None:
        setattr(tally, outcome, getattr(tally, outcome) + 1)
        tally.stories.append(f"{story}: {what}")

    with closing(plain_connection(harness.url)) as connection:
        damage = [line for (line,) in connection.execute("PRAGMA integrity_check").fetchall() if line != "ok"]
        ledger = Counter(connection.execute("SELECT job_id, what FROM ledger").fetchall())
        jobs = {row[0]: row[1:] for row in connection.execute("SELECT id, task, state, error FROM detent_job")}
        keys = dict(connection.execute("SELECT job_id, key FROM detent_job_key").fetchall())
    if damage:
        say("wrong", f"integrity_check: {damage[:5]}")
    for violation in harness.store.verify():
        say("wrong", f"verify: {violation}")
    orders = [job_id for job_id, (task, *_) in jobs.items() if task == "order"]
    steps = {(job_id, step.path) for job_id in orders for step in harness.store.step_list(job_id).rows}
    for promise in promises:
        place = promise.job_id, promise.what
        there = {
            "job": keys.get(promise.job_id) == promise.what,
            "effect": ledger[place] == 1,
            "step": place in steps,
        }[promise.kind]
        if not there:
            say("lost", f"{promise} was acknowledged, and is gone")
    for (job_id, what), count in ledger.items():
        if count > 1:
            say("doubled", f"job {job_id} was {what} {count} times")
    for job_id, (task, state, error) in jobs.items():
        if ended and state != "succeeded":
            say("stuck", f"job {job_id} ({task}) is {state}: {error}")
        if ended and not ledger[job_id, "booked" if task == "order" else "paid"]:
            say("lost", f"job {job_id} has succeeded without its effect")
