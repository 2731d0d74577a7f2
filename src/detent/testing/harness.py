"""What the fixture `detent` holds: a throw-away database, its clock, and a worker that works when it is told to."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Literal, get_args

from detent.app.detent import Detent
from detent.app.wiring import Wiring
from detent.batch.due import begin_due
from detent.client.job import Job
from detent.errors import DetentError, InvalidInput, WrongPlace
from detent.model.records import Abort, Claimed, Commit, Finish
from detent.testing.stores import StoreClock, turnable_store
from detent.worker.attempt import Attempt
from detent.worker.context import DirectSink
from detent.worker.unknown import look_back

__all__ = ["CrashPoint", "Harness"]

CrashPoint = Literal["claimed", "started", "returned", "committed"]

_BATCH = 100
_WORKER = "test"


class Harness:
    """A Detent application on a database of the test's own.

    `app` is a fresh application; `use(app)` puts an application of yours on the test's database until the test ends.
    Time stands still until `clock.advance(seconds)`. `work()` carries out everything that is due.
    """

    def __init__(self, url: str, *, lease: float = 30.0) -> None:
        self._exits = ExitStack()
        store, clock = self._exits.enter_context(turnable_store(url))
        self.url = url
        self.store = store
        self.clock: StoreClock = clock
        self.lease = lease
        self._crashes: dict[int, CrashPoint] = {}
        self._app: Detent | None = None

    @property
    def app(self) -> Detent:
        """The application on the test's database: yours after `use`, else a fresh one."""
        if self._app is None:
            self._app = self.use(Detent(self.url))
        return self._app

    def use(self, app: Detent) -> Detent:
        """Put an application on the test's database; it goes back to its own when the test ends."""
        wiring = Wiring(app.settings, self.clock, self.store)
        self._exits.callback(app.rewire, app.rewire(wiring))
        self._exits.callback(wiring.close)
        self._app = app
        return app

    def work(self, *, most: int = 10_000) -> list[Job[Any]]:
        """Carry out what is due now, and what comes due from it at once; the jobs in the order of their attempts.

        Jobs that back off or are due later stay until the clock is turned. More than `most` attempts are refused: a job
        that enqueues itself for ever is a mistake in a test.
        """
        worked: list[Job[Any]] = []
        self.app.put_declared(again=True)
        begin_due(self.store, self.app.ids)
        while True:
            self.store.lease_reap(_BATCH)
            self.store.job_expire(_BATCH)
            self.store.job_promote(_BATCH)
            claimed = self.store.job_claim(
                lease_id=self.store.ids_reserve(1),
                worker=_WORKER,
                queues=None,
                tasks=sorted(self.app.tasks),
                limit=1,
                lease=self.lease,
            )
            if not claimed:
                return worked
            if len(worked) >= most:
                raise WrongPlace("detent.work()", f"for more than {most} attempts", "raise `most`, or look for a loop")
            self._attempt(claimed[0])
            worked.append(self.app.get(claimed[0].job_id))

    def crash(self, job: Job[Any], at: CrashPoint = "started") -> None:
        """Let the worker die in the next attempt at this job, at that point of its life; its lease then runs out.

        `claimed`: before the function is called. `started`: the attempt is in progress on record, the function has not
        run. `returned`: the function has run, nothing was written after it. `committed`: the effect is committed, the
        job is not finished.
        """
        if at not in get_args(CrashPoint):
            raise InvalidInput("at", repr(at), ", ".join(get_args(CrashPoint)))
        self._crashes[job.id] = at

    def _attempt(self, claimed: Claimed) -> None:
        crash = self._crashes.pop(claimed.job_id, None)
        if crash == "claimed":
            return
        past = look_back(self.store, claimed, self.app.find_task(claimed.task))
        self.store.job_start([(claimed.job_id, claimed.attempt)])
        if crash == "started" or isinstance(past, DetentError):
            return
        ending = Attempt(claimed, self.app, self.store, DirectSink(self.store), past.unknown).run()
        if crash == "committed" and isinstance(ending, Finish):
            self.store.job_commit(Commit(job_id=claimed.job_id, attempt=claimed.attempt, result=ending.result))
        if crash is not None:
            return
        match ending:
            case Finish():
                self.store.job_finish([ending], _WORKER)
            case Abort():
                self.store.job_abort([ending], _WORKER)
            case None:
                pass

    def close(self) -> None:
        """Give applications back their databases and let go of this one."""
        self._exits.close()
