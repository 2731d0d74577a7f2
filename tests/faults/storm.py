"""A storm of kills: work arrives all through, and whoever is seen to hold a lease may die the next moment."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.deadlines import scaled
from tests.faults.ledger import Ring
from tests.processes.worker_processes import Worker, until

WORKERS = 4
LEASE = scaled(2.0)
UP_MIN = 2
"""Number of workers that must have run jobs since they, or their child, were last killed, before the next kill. So
there is always a worker with free slots that takes over."""

WAITING_MAX = 4
"""Nobody is killed while more jobs wait for a slot: what is measured is taking over, not standing in line."""

UNDER_WAY = 1.0
"""Seconds that an ending or a claim may take, until it is durable, on a machine as busy as this."""

ARRIVALS_PER_SECOND = 12
WHOLE = 0.7
"""The part of the kills that takes the supervisor, and so the worker; the others take one of its children."""


def seconds(moment: int | datetime) -> float:
    """A time on record, in whichever way the database keeps it."""
    return moment.timestamp() if isinstance(moment, datetime) else moment / 1_000_000


def maybe(moment: int | datetime | None) -> float | None:
    """The same of a time that may be missing."""
    return None if moment is None else seconds(moment)


@dataclass(frozen=True)
class Kill:
    """One death: of which worker, whether of all of it, and when."""

    name: str
    whole: bool
    at: datetime


@dataclass(frozen=True)
class Wait:
    """Seconds from the kill of its worker until a job was claimable again, and until somebody had claimed it."""

    claimable: float
    claimed: float


@dataclass(frozen=True)
class Turn:
    """One attempt: when it was claimed, when it ended without success, when its job was due again, and when that was
    enqueued; in seconds."""

    job: int
    attempt: int
    expired: bool
    claimed: float
    ended: float | None
    due_again: float | None
    enqueued: float


def overtaken(turns: list[Turn]) -> list[str]:
    """Who was claimed before a job that stood in line again, and had come to the line later."""
    due = {(one.job, one.attempt + 1): one.due_again for one in turns if one.due_again is not None}
    claimed = {(one.job, one.attempt): one.claimed for one in turns}
    found: list[str] = []
    for one in turns:
        again = (one.job, one.attempt + 1)
        if not one.expired or one.ended is None or again not in claimed:
            continue
        for other in turns:
            its_due = due.get((other.job, other.attempt), other.enqueued)
            # What was on its way when the job came to the line has not passed it.
            if one.ended + UNDER_WAY < other.claimed < claimed[again] and its_due > due[again]:
                found.append(f"job {other.job}, due {its_due:.3f}, before {one.job}, due {due[again]:.3f}")
    return found


@dataclass
class Storm:
    """Kills workers on `ring` as chance has it, from a seed, and keeps what it did."""

    ring: Ring
    seed: int
    kills: list[Kill] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._workers: dict[str, Worker] = {}
        self._began: dict[str, datetime] = {}
        self._up: set[str] = set()
        self._named = 0
        self._over = threading.Event()

    def rage(self, seconds: float, kills_max: int) -> None:
        """Until that many kills, or until the time is up and somebody was killed; the workers that are left go on."""
        for _ in range(WORKERS):
            self._start()
        arriving = threading.Thread(target=self._arrive)
        arriving.start()
        try:
            # However slowly workers start on this machine, the time counts from when they are at work.
            until(lambda: self._look() and len(self._up) >= UP_MIN, "workers at work")
            end = time.monotonic() + seconds
            while len(self.kills) < kills_max and not (self.kills and time.monotonic() > end):
                self._strike()
        finally:
            self._over.set()
            arriving.join()

    def waits(self) -> list[Wait]:
        """For every attempt that was cut off by the kill of its worker: how long its job waited.

        An attempt that a child began after the kill, in its last moments without a supervisor, is not among them.
        """
        found: list[Wait] = []
        for (job_id,) in self.ring.ask("SELECT DISTINCT job_id FROM {execution} WHERE outcome = 'expired'"):
            for before, after in itertools.pairwise(self.ring.app.jobs.get(job_id).executions()):
                kills = [one.at for one in self.kills if one.whole and one.name == before.worker]
                between = [at for at in kills if before.leased_at < at < after.leased_at]
                if before.outcome == "expired" and before.aborted_at is not None and between:
                    claimable, claimed = before.aborted_at - between[0], after.leased_at - between[0]
                    found.append(Wait(claimable.total_seconds(), claimed.total_seconds()))
        return found

    def overtaken(self) -> list[str]:
        """Jobs that stood in line again, and others that came to it later and were claimed before them."""
        rows = self.ring.ask(
            "SELECT e.job_id, e.attempt, e.outcome, e.leased_at, e.aborted_at, e.next_due_at, j.created_at"
            " FROM {execution} e JOIN {job} j ON j.id = e.job_id"
        )
        return overtaken(
            [
                Turn(job, attempt, outcome == "expired", seconds(leased), maybe(ended), maybe(due), seconds(created))
                for job, attempt, outcome, leased, ended, due, created in rows
            ]
        )

    def unexpected_ends(self) -> list[str]:
        """What workers said that ended without being killed."""
        return [worker.log[-3000:] for worker in self._workers.values() if worker.process.poll() is not None]

    def _start(self, name: str | None = None) -> None:
        if name is None:
            self._named += 1
            name = f"storm{self._named}"
        self._began[name] = datetime.now(UTC)
        self._workers[name] = self.ring.worker(name=name, slots=8, lease=LEASE)

    def _arrive(self) -> None:
        chance = random.Random(self.seed + 1)
        while not self._over.wait(1 / ARRIVALS_PER_SECOND):
            job = self.ring.send(chance.choice(("work", "work_async")), ms=chance.randint(50, 500))
            self.jobs.append(job.id)

    def _look(self) -> dict[str, list[int]]:
        """The jobs held by each living worker, as the view `executions` shows them."""
        seen: dict[str, list[int]] = {}
        for held in self.ring.holders():
            # A lease older than the worker is that of a dead one of the same name.
            if held.worker in self._workers and held.leased_at > self._began[held.worker]:
                seen.setdefault(held.worker, []).append(held.job_id)
        self._up |= seen.keys()
        return seen

    def _strike(self) -> None:
        """Kill somebody who is seen to hold a lease, up to 300 ms later."""
        seen = self._look()
        if len(self._up) < UP_MIN or not seen or self.ring.states().get("pending", 0) > WAITING_MAX:
            self._over.wait(0.01)
            return
        name = self._chance.choice(sorted(seen))
        self._over.wait(self._chance.uniform(0.0, 0.3))
        worker = self._workers[name]
        whole = self._chance.random() < WHOLE
        below = worker.descendants()
        if not whole and not below:
            return
        kill_at = datetime.now(UTC)
        if whole:
            worker.process.kill()
            worker.process.wait()
        else:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(below), signal.SIGKILL)
        self._up.discard(name)
        self.kills.append(Kill(name, whole, kill_at))
        if whole:
            del self._workers[name]
            self._start(name if self._chance.random() < 0.5 else None)
        else:
            # What it held is no sign of life: its next child's is.
            self._began[name] = datetime.now(UTC)
