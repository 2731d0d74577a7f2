"""The fixture `detent`: a throw-away database, its clock, and a worker that runs jobs when the test asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from detent.app.detent import Detent
from detent.batch.due_reconciliations import begin_due
from detent.client.engine import Engine
from detent.client.job import Job, JobSnapshot
from detent.declare.task import AnyTask, Call
from detent.declare.workflow import versions_continued
from detent.errors import DetentError, InvalidInput, WrongPlace
from detent.model import fork_count
from detent.model.records import Abort, Claimed, Commit, Finish
from detent.model.service_records import WorkerSeen
from detent.schedule.due_ticks import fire_due
from detent.testing.enqueued import Wanted
from detent.testing.mortal_worker import MortalWorker, WorkerDied, is_crash_at_step
from detent.testing.stores import START, StoreClock, turnable_store
from detent.webhooks.outgoing import DELIVERY_TASK
from detent.worker.attempt.attempt import Attempt
from detent.worker.attempt.event_sink import DirectSink
from detent.worker.attempt.history import read_history
from detent.worker.services.recovery import build_ops_recovery_service
from detent.worker.services.retention import Keep, Retention

__all__ = ["CrashPoint", "Harness"]

CrashPoint = Literal["claimed", "started", "returned", "committed"]

_BATCH = 100
_WORKER = "test"
_HOUR = timedelta(hours=1)
_FAR_AWAY = datetime(9000, 1, 1, tzinfo=UTC)
"""The agenda reports jobs that are parked without a time limit as due then."""


class Harness:
    """A Detent application on a database of the test's own.

    `app` is a fresh application; `use(app)` puts an application of yours on the test's database until the test ends.
    Time stands still until `clock.advance(seconds)`. `work()` runs everything that is due, and so does `await awork()`.
    """

    def __init__(self, url: str, *, lease: float = 30.0) -> None:
        self._exits = ExitStack()
        store, clock = self._exits.enter_context(turnable_store(url))
        self.url = url
        self.store = store
        self.clock: StoreClock = clock
        self.lease = lease
        self.delivers_webhooks = False  # so that no test sends anything by mistake
        self.runs_inline = False
        """Whether `enqueue` runs everything that is due, as `work()` does, before it returns."""
        self._is_working = False
        self._crashes: dict[int, str] = {}
        self._mortals: dict[int, MortalWorker] = {}
        self._abandoned: set[int] = set()
        """Jobs whose worker has died."""
        self._retention: Retention | None = None
        self._app: Detent | None = None
        self._sink = DirectSink(store, _WORKER)
        self._exits.callback(self._sink.close)

    @property
    def app(self) -> Detent:
        """The application on the test's database: yours after `use`, else a fresh one."""
        if self._app is None:
            self._app = self.use(Detent(self.url))
        return self._app

    def use(self, app: Detent) -> Detent:
        """Put an application on the test's database, and write what its code declares. It goes back to its own database
        when the test ends."""
        engine = Engine(app.settings, self.clock, self.store)
        engine.inline = self
        self._exits.callback(app.rewire, app.rewire(engine))
        self._exits.callback(engine.close)
        self._app = app
        app.put_declared(again=True)
        return app

    def work(self, *, most: int = 10_000, skip: bool = False) -> list[Job[Any]]:
        """Run everything that is due now, as a worker would, and return the jobs in the order of their attempts.

        Fires schedules, calls the `on_failure` hooks and applies retention, all by the clock of the test. Deliveries of
        `app.notify` are enqueued, and sent only if `delivers_webhooks` is True. Jobs that back off or are due later
        wait until the clock is turned. With `skip`, the clock is turned to the next time at which a job is due or
        expires or a lease expires, again and again, until none is left: workflows sleep, time out and back off without
        delay. Jobs that wait for a signal without a time limit stay parked. The next tick of a schedule is no reason to
        turn the clock.

        Inside a running event loop, async functions run on a thread with a loop of their own; `awork` runs them on the
        loop of the test. More than `most` attempts are refused, since a job that enqueues itself for ever is a mistake
        in a test.
        """
        worked: list[Job[Any]] = []
        with self._working():
            self._begin()
            while True:
                while (claimed := self._claim(len(worked), most)) is not None:
                    self.attempt(claimed)
                    worked.append(self.app.jobs.get(claimed.job_id))
                if not (skip and self._skip()):
                    return worked

    async def awork(self, *, most: int = 10_000, skip: bool = False) -> list[Job[Any]]:
        """Do the same as `work` in an async test: async functions run on the loop of the test, others on a thread."""
        worked: list[Job[Any]] = []
        with self._working():
            self._begin()
            while True:
                while (claimed := self._claim(len(worked), most)) is not None:
                    await self._attempt_on_loop(claimed)
                    worked.append(self.app.jobs.get(claimed.job_id))
                if not (skip and self._skip()):
                    return worked

    def sent(self) -> None:
        """Run what was enqueued, if `runs_inline` is True. Jobs that a job enqueues run after it."""
        if self.runs_inline and not self._is_working:
            self.work()

    async def sent_on_loop(self) -> None:
        """Do the same on the loop of the test."""
        if self.runs_inline and not self._is_working:
            await self.awork()

    @contextmanager
    def _working(self) -> Iterator[None]:
        before, self._is_working = self._is_working, True
        try:
            yield
        finally:
            self._is_working = before

    async def _attempt_on_loop(self, claimed: Claimed) -> None:
        attempt = self._start(claimed)
        if attempt is None:
            return
        ending: Finish | Abort | None = None
        with suppress(WorkerDied):
            if attempt.task.is_async and attempt.unknown is None:
                await asyncio.to_thread(attempt.prepare)
                ending = await attempt.run_async(fork_count.count)
            else:
                ending = await asyncio.to_thread(attempt.run)
        self._end(claimed, ending, parked=attempt.context.parked)

    def _skip(self) -> bool:
        """Turn the clock to the next time at which something is due. Return False if there is none."""
        me = self.store.ids_reserve(1)
        seen = WorkerSeen(id=me, name=_WORKER, host=_WORKER, pid=0, queues=(), tasks=(), slots=1)
        agenda = self.store.worker_seen(seen)
        self.store.worker_gone(me)
        rows = self.store.job_get(sorted(self._abandoned))
        self._abandoned = {row.id for row in rows if row is not None and row.state == "running"}
        times = (agenda.promote_at, agenda.expire_at, agenda.reap_at if self._abandoned else None)
        due = [at for at in times if at is not None and self.clock.now() < at < _FAR_AWAY]
        if due:
            self.clock.set(min(due))
        return bool(due)

    def attempt(self, claimed: Claimed) -> None:
        """Run one job that the test itself has claimed from the store."""
        attempt = self._start(claimed)
        if attempt is None:
            return
        ending: Finish | Abort | None = None
        with suppress(WorkerDied):
            ending = attempt.run()
        self._end(claimed, ending, parked=attempt.context.parked)

    def crash(self, job: JobSnapshot[Any], at: CrashPoint | str = "started") -> None:
        """Let the worker die in the next attempt at this job, at that point; its lease then expires.

        `claimed`: before the function is called. `started`: the attempt is in progress on record, the function has not
        run. `returned`: the function has run, nothing was written after it. `committed`: the effect is committed, the
        job is not finished.

        In a workflow also, for a step by its path (such as `charge`, `charge#2`, `left/charge`, `signal decision`):
        `called charge`: its function has returned, and its value is not on record, so the next attempt calls it again.
        `recorded charge`: its value is on record, and the workflow has not seen it. `parking`: the workflow waits, and
        is not parked yet. The worker dies in the first attempt that comes to that point.
        """
        if at not in get_args(CrashPoint) and not is_crash_at_step(at):
            allowed = ", ".join((*get_args(CrashPoint), "parking, called STEP, recorded STEP"))
            raise InvalidInput("at", repr(at)[:80], allowed)
        self._crashes[job.id] = at

    def _begin(self) -> None:
        self.app.put_declared(again=True)
        self._serve()

    def _claim(self, done: int, most: int) -> Claimed | None:
        """Claim the next job. If there is none, run the services, which may create one; then apply retention."""
        while True:
            claimed = self._claim_one()
            if claimed is None and self._serve():
                continue
            if claimed is None:
                self._retain()
            elif done >= most:
                raise WrongPlace("detent.work()", f"for more than {most} attempts", "raise `most`, or look for a loop")
            return claimed

    def _claim_one(self) -> Claimed | None:
        self.store.lease_reap(_BATCH)
        self.store.job_expire(_BATCH)
        self.store.workflow_wake(_BATCH)
        while self.store.tree_cancel_step(_BATCH):
            pass
        self.store.job_promote(_BATCH)
        found = self.store.job_claim(
            lease_id=self.store.ids_reserve(1),
            worker=_WORKER,
            queues=None,
            tasks=sorted(self.app.tasks.keys() - (set() if self.delivers_webhooks else {DELIVERY_TASK})),
            limit=1,
            lease=self.lease,
            versions=versions_continued(self.app.tasks),
        )
        return found[0] if found else None

    def _serve(self) -> bool:
        """Run the services of a worker once. Return whether there may be more jobs after it."""
        ids = self.app.ids
        made = len(fire_due(self.store, ids)) + begin_due(self.store, ids)
        for operation in self.store.operation_list("running", _BATCH):
            self.app.operations.get(operation.id).wait()
            made += 1
        build_ops_recovery_service(self.store).run(self.clock.monotonic())
        announcements = self.app.announcements
        if announcements is not None and announcements.put_announced():
            while self.store.counts_fold(_BATCH):  # successes are put on the list when they are counted
                pass
        failures = self.store.failure_report_take(sorted(self.app.tasks), _BATCH, self.lease)
        if announcements is not None:
            unended = announcements.announce_ends(failures)
            self.store.failure_report_keep(unended, 0)
            failures = [one for one in failures if one not in unended]
            made += announcements.read_record() + announcements.announce_ops_runs()
        for failure in failures:
            self.app.tell_failure(*failure)
        self.store.failure_report_done(failures)
        return made + len(failures) > 0

    def _retain(self) -> None:
        """Apply retention, once in every hour of the clock after the first."""
        if self._retention is None:
            if self.clock.now() < START + _HOUR:
                return
            settings = self.app.settings
            keep = Keep(
                settings.keep_succeeded,
                settings.keep_others,
                settings.keep_staged,
                settings.keep_log,
                keys_as_jobs=settings.keep_keys == "as_jobs",
            )
            self._retention = Retention(self.store, keep)
        self._retention.run(self.clock.monotonic())
        while self._retention.is_walking:
            self._retention.run(self.clock.monotonic())

    def _start(self, claimed: Claimed) -> Attempt | None:
        """Put the attempt on record as started; None if the worker is to die before the function runs."""
        crash = self._crashes.get(claimed.job_id)
        self._abandoned.add(claimed.job_id)
        if crash == "claimed":
            del self._crashes[claimed.job_id]
            return None
        past = read_history(self.store, claimed, self.app.find_task(claimed.task))
        self.store.job_start([(claimed.job_id, claimed.attempt)])
        if crash == "started" or isinstance(past, DetentError):
            self._crashes.pop(claimed.job_id, None)
            return None
        store, sink = self.store, self._sink
        if crash is not None and is_crash_at_step(crash):
            mortal = self._mortals[claimed.job_id] = MortalWorker(self.store, crash, _WORKER)
            store, sink = mortal.store, mortal.sink
        return Attempt(claimed, self.app, store, sink, past.unknown)

    def _end(self, claimed: Claimed, ending: Finish | Abort | None, *, parked: bool) -> None:
        mortal = self._mortals.pop(claimed.job_id, None)
        if parked or (mortal is not None and not mortal.has_died):
            crash = None  # the attempt did not come to that point
        else:
            crash = self._crashes.pop(claimed.job_id, None)
        if crash == "committed" and isinstance(ending, Finish):
            self.store.job_commit(Commit(job_id=claimed.job_id, attempt=claimed.attempt, result=ending.result))
        if crash is not None:
            return
        self._abandoned.discard(claimed.job_id)
        match ending:
            case Finish():
                self.store.job_finish([ending], _WORKER)
            case Abort():
                self.store.job_abort([ending], _WORKER)
            case None:
                pass

    def assert_enqueued(
        self,
        what: AnyTask | Call[Any] | str,
        *,
        payload: Mapping[str, Any] | None = None,
        key: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        due_at: datetime | None = None,
        count: int | None = None,
    ) -> Job[Any]:
        """Fail unless a job of this task is on record, whatever its state, and return it: the newest that matches.

        `what` is a task, its name, or a call. `payload` is a part of the arguments: objects may have more fields. The
        key of a job that has a tenant is found together with `tenant`. With `count`, exactly this number must match.
        The message shows the nearest jobs and how they differ.
        """
        __tracebackhide__ = True
        wanted = Wanted.of(what, payload, key, queue=queue, tenant=tenant, due_at=due_at)
        return wanted.check(self.app, count)

    def refute_enqueued(
        self,
        what: AnyTask | Call[Any] | str,
        *,
        payload: Mapping[str, Any] | None = None,
        key: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        due_at: datetime | None = None,
    ) -> None:
        """Fail if such a job is on record. Arguments as for `assert_enqueued`."""
        __tracebackhide__ = True
        Wanted.of(what, payload, key, queue=queue, tenant=tenant, due_at=due_at).refute(self.app)

    def close(self) -> None:
        """Put applications back on their own databases, and close this one."""
        self._exits.close()
