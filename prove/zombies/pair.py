"""Two workers on a database of their own. One of them stands still, the other takes over."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from detent.client.job import Job
from detent.testing.stores import is_sqlite
from prove.coverage import fault_points, transitions_of
from prove.figure import Budget, Tally
from prove.kills.deed import Finding
from prove.zombies.application import FOLDER, MOMENTS, Stops, make_app
from tests.deadlines import scaled
from tests.faults.ledger import Ring
from tests.processes.worker_processes import Worker

__all__ = ["FAULT", "zombies"]

FAULT = "SIGSTOP beyond the lease"
_LEASE = scaled(1.0)
_STILL = 1.3 * _LEASE
"""Seconds for which a worker stands still at least."""
_TAKEN_OVER_MAX = 10 * _LEASE
"""Seconds for which it stands still at most, if no other worker brings the job to its end."""
_TAKEN_OVER_MAX_OF_FILE = 4 * _LEASE
"""The same on SQLite, where any process of the worker may have been stopped with the lock of the file in its hands."""
_ENDED_MAX = scaled(60.0)
_LATER = 0.5 * _LEASE
"""Seconds for which the worker that takes over may work: the other one goes on in the middle of that."""
_PAUSE = 0.03
_HOLDS_FILE = ("in the block", "in a transaction")
"""Moments at which a worker holds the lock of a SQLite file, so that no other worker can take over."""
_ENDED = ("succeeded", "failed", "quarantined", "cancelled")
_TASKS = {moment: task for task, moments in MOMENTS.items() for moment in moments}


@dataclass(frozen=True)
class _Stopped:
    """A job whose worker has stopped at a moment. `taken_over`: another worker had it, or had ended it, when the first
    one went on."""

    moment: str
    job: Job[Any]
    taken_over: bool


def zombies(
    budget: Budget,
    ring: Ring,
    *,
    seed: int,
    most: int,
    moments: tuple[str, ...] = tuple(_TASKS),
    findings_max: int = 30,
) -> Tally:
    """Let workers stand still at these moments, in an order drawn from the seed, until the budget is spent or it
    happened so often. Then look at all jobs."""
    chance, tally = random.Random(seed), Tally()
    pair = _Pair(ring, tally)
    jobs: list[_Stopped] = []
    order: list[str] = []
    found = 0
    try:
        while len(jobs) < most and found < findings_max and not (budget.is_spent and jobs) and not tally.stuck:
            if not order:
                order = list(moments)
                chance.shuffle(order)
            if (stopped := pair.stop_at(order.pop(), in_the_middle=chance.random() < 0.5)) is not None:
                jobs.append(stopped)
                # What is written later is found at the end.
                found += any(True for _ in pair.look(stopped))
    finally:
        pair.end()
    for one in jobs:
        for kind, text in pair.look(one):
            setattr(tally, kind, getattr(tally, kind) + 1)
            if len(tally.stories) < findings_max:
                tally.stories.append(f"{one.moment!r}: {text}")
    for violation in ring.app.record.verify():
        tally.wrong += 1
        tally.stories.append(f"verify: {violation}")
    tally.injected[FAULT] += len(jobs)
    tally.covered.update({point: len(jobs) for point in fault_points(FAULT)})
    tally.covered.update(f"zombie {one.moment}" for one in jobs)
    tally.covered.update(pair.stops.errors())
    tally.covered.update(transitions_of(ring.url))
    tally.covered["zombie taken over"] += sum(one.taken_over for one in jobs)
    taken, met = sum(one.taken_over for one in jobs), {one.moment for one in jobs}
    tally.notes.append(f"{len(met)} of {len(_TASKS)} moments, {taken} jobs were taken over meanwhile, seed {seed}")
    return tally


class _Pair:
    """The workers and their database."""

    def __init__(self, ring: Ring, tally: Tally) -> None:
        self._ring = ring
        self._tally = tally
        self.stops = Stops(ring.directory)
        ring.app.close()
        ring.app = make_app(ring.url, str(ring.directory))
        self._workers = [self._worker(name) for name in ("left", "right")]

    def _worker(self, name: str) -> Worker:
        folder = {FOLDER: str(self._ring.directory)}
        app = "prove.zombies.application:app"
        return self._ring.worker(name=name, app=app, slots=1, lease=_LEASE, environment=folder)

    def stop_at(self, moment: str, *, in_the_middle: bool) -> _Stopped | None:
        """Let the worker of a new job stand still at this moment, until another worker has ended the job or is in the
        middle of it. Then wait for its end. None if no worker came to the moment."""
        task = _TASKS[moment]
        self.stops.arm(moment)
        arguments = {} if task == "once" else {"later": _LATER * in_the_middle}
        if task == "effect":
            # Long enough to be renewed in between.
            arguments["seconds"] = 0.7 * _LEASE * moment.endswith("lease_renew")
        job = self._ring.app.enqueue(self._ring.app.find_task(task).call(**arguments))
        stopped: _Stopped | None = None
        if pid := self._stopped_process(job):
            stopped = _Stopped(moment, job, self._stand_still(pid, job, moment, in_the_middle=in_the_middle))
        if not _wait(lambda: _has_ended(job), _ENDED_MAX):
            self._tally.stuck += 1
            self._tally.stories.append(f"{moment!r}: {job} did not come to its end: {job.refresh().row}")
        return stopped

    def _stopped_process(self, job: Job[Any]) -> int:
        until = time.monotonic() + _ENDED_MAX
        while not (pid := self.stops.take_stopped()):
            if _has_ended(job) or time.monotonic() > until:
                self.stops.disarm()
                return self.stops.take_stopped()
            time.sleep(_PAUSE)
        return pid

    def _stand_still(self, pid: int, job: Job[Any], moment: str, *, in_the_middle: bool) -> bool:
        """Let the worker of this process stand still. Return whether another worker has taken over meanwhile."""
        (worker,) = [one for one in self._workers if pid in _processes(one)]
        processes = _processes(worker)
        _signal(processes, signal.SIGSTOP)
        began_at, attempt = time.monotonic(), job.refresh().row.attempt

        def is_over() -> bool:
            # A later attempt proves that the lease has expired.
            has_ended = _has_ended(job)
            if in_the_middle and job.row.attempt > attempt:
                return True
            return has_ended and time.monotonic() > began_at + _STILL

        try:
            if is_sqlite(self._ring.url) and moment in _HOLDS_FILE:
                time.sleep(_STILL)
                return False
            return _wait(is_over, _TAKEN_OVER_MAX_OF_FILE if is_sqlite(self._ring.url) else _TAKEN_OVER_MAX)
        finally:
            _signal(processes, signal.SIGCONT)

    def end(self) -> None:
        """Let both workers end by themselves: after that, nothing can be written any more."""
        self.stops.disarm()
        for worker in self._workers:
            # A process may have stopped just before its moment was disarmed.
            _signal(_processes(worker), signal.SIGCONT)
            if worker.process.poll() is not None:
                self._tally.wrong += 1
                self._tally.stories.append(f"a worker has ended by itself:\n{worker.log[-3000:]}")
            worker.signal(signal.SIGTERM)
        for worker in self._workers:
            try:
                code = worker.ends()
            except AssertionError as error:
                self._tally.stuck += 1
                self._tally.stories.append(str(error))
                _signal(_processes(worker), signal.SIGKILL)
            else:
                self._tally.wrong += code not in (0, -signal.SIGTERM)

    def look(self, stopped: _Stopped) -> Iterator[Finding]:
        """Tell what is wrong with a job."""
        job = stopped.job.refresh()
        if job.state != "succeeded" and not (job.state == "quarantined" and job.task == "once"):
            yield "wrong", f"job {job.id} is {job.state}: {job.error}"
            return
        attempts = {one.attempt: one for one in job.executions()}
        last = attempts[max(attempts)]
        effects = [attempt for (attempt,) in self._ring.ask(f"SELECT attempt FROM ledger WHERE job_id = {job.id}")]
        if job.task == "once":
            if (calls := self.stops.calls().count(str(job.id))) > 1:
                yield "doubled", f"job {job.id} must not be repeated and was called {calls} times"
        elif job.task == "report":
            if job.result != f"attempt {last.attempt}":
                yield "wrong", f"job {job.id} has the result of {job.result} instead of attempt {last.attempt}"
        elif len(effects) != 1:
            yield "doubled" if effects else "lost", f"job {job.id} has left rows of attempts {effects}"
        elif job.task == "effect" and effects != [last.attempt]:
            yield (
                "wrong",
                f"attempt {effects[0]} of job {job.id} has an effect, and attempt {last.attempt} is on record",
            )
        for step in self._ring.app.store.step_list(job.id).rows if job.task == "flow" else ():
            by = attempts[step.attempt]
            if step.done_at is not None and by.aborted_at is not None and step.done_at > by.aborted_at:
                yield "wrong", f"step {step.path} of job {job.id} was recorded by attempt {by.attempt} after its end"
            if step.path in ("call", "book") and step.value != f'"attempt {step.attempt}"':
                yield "wrong", f"step {step.path} of job {job.id} by attempt {step.attempt} has the value {step.value}"
            if step.path == "book" and effects != [step.attempt]:
                yield "wrong", f"step book of job {job.id} is of attempt {step.attempt}, its row of {effects}"


def _wait(look: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not look():
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE)
    return True


def _has_ended(job: Job[Any]) -> bool:
    return job.refresh().state in _ENDED


def _processes(worker: Worker) -> list[int]:
    return [worker.process.pid, *worker.descendants()] if worker.process.poll() is None else []


def _signal(processes: list[int], number: int) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
