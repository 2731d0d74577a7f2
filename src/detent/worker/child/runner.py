"""Runs the jobs that a child holds: begins each attempt, hands it to an executor, and ends it.

There is one `begin` and one `end`, both under one lock, whatever executes the function:

- async functions run on the event loop (`executors/event_loop`);
- plain functions run on threads (`executors/threads`);
- functions declared with `process=True`, and jobs that may have killed their process, run in processes of their own
  (`executors/isolated_process`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from detent.app.detent import Detent
from detent.errors import DatabaseError, DetentError, LeaseLost, StepTooNew
from detent.model.clock import Clock
from detent.model.records import Abort, Claimed, Finish
from detent.model.stored_text import error_text
from detent.store.contract import Store
from detent.worker.attempt.attempt import Attempt
from detent.worker.attempt.coroutine_driver import SuspendedCoroutine
from detent.worker.attempt.endings import SHORT, Ending, add_start_time, end_attempt
from detent.worker.attempt.history import AttemptHistory, read_history
from detent.worker.child.core import ClaimRequest, Core, HeldJob
from detent.worker.child.executors.event_loop import EventLoopExecutor
from detent.worker.child.executors.isolated_process import IsolatedExecutor
from detent.worker.child.executors.threads import ThreadExecutor
from detent.worker.child.flusher import Flusher
from detent.worker.child.running_attempt import ChainedCall, RunningAttempt
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.supervisor.board import Board

__all__ = ["Runner"]

_TURN_MAX = 0.005
"""Seconds of calling functions that do not wait, until functions that wait get a turn on the loop."""
_ROUND = 64
"""Maximum number of jobs that are begun together."""
_PREPARE_MAX = 60.0
"""Seconds that preparing an attempt may take, in addition to its time-out."""

_EndedJob = tuple[HeldJob, Ending]


class Runner:
    """The jobs of one child. `room` is set when the child may claim again; `busy` is called on the loop when it gets
    work. `begin`, `end` and `wake` are safe from any thread."""

    def __init__(
        self,
        app: Detent,
        store: Store,
        options: WorkerOptions,
        board: Board,
        clock: Clock,
        flusher: Flusher,
        backoff: OutageBackoff,
        stopping: threading.Event,
        *,
        room: threading.Event,
        busy: Callable[[], None],
    ) -> None:
        self._app = app
        self._store = store
        self._board = board
        self._clock = clock
        self._flusher = flusher
        self._backoff = backoff
        self._stopping = stopping
        self._room = room
        self._busy = busy
        self.lock = threading.Lock()
        self.core = Core(
            slots=options.slots,
            reserve_max=options.reserve_max,
            queues=options.queues,
            queue_slots=options.queue_slots,
        )
        self.running: dict[HeldJob, RunningAttempt] = {}
        self.ended = 0
        """Number of attempts that have begun and ended."""
        self._threads = ThreadExecutor(options.slots)
        self._isolated = IsolatedExecutor(options)
        self._is_woken = False
        self._begun: deque[HeldJob] = deque()
        self._loop_now = 0.0
        self._dispatcher: asyncio.Task[None] | None = None

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run async functions on this loop. Called on the loop, before anything is claimed."""
        self._loop = loop
        self._on_loop = EventLoopExecutor(loop)

    # -- what is held ------------------------------------------------------------------------------------------

    def next_claims(self) -> list[ClaimRequest]:
        """Return the claims worth trying now."""
        with self.lock:
            return self.core.next_claims(self._clock.monotonic())

    def add_claimed(self, lease_id: int, jobs: list[Claimed], at: float) -> None:
        """Run jobs that were claimed under this lease at time `at`. If the child stops, they are handed back."""
        with self.lock:
            self.core.add_claimed(lease_id, jobs, at)
            late = self.core.stop() if self._stopping.is_set() else []
        self.hand_back(late)
        self.wake()

    def holding(self) -> list[HeldJob]:
        """Return all jobs held, begun or not."""
        with self.lock:
            return list(self.core.held)

    def hand_back(self, unbegun: Iterable[HeldJob]) -> None:
        """Release jobs that have not begun."""
        for held in unbegun:
            self.end(held, end_attempt(held.claimed))

    def stop(self) -> None:
        """Begin no more jobs, and release those that have not begun."""
        with self.lock:
            rest = self.core.stop()
        self.hand_back(rest)

    # -- begin and end -----------------------------------------------------------------------------------------

    def begin(
        self,
        held: HeldJob,
        attempt: Attempt,
        now: float,
        *,
        called: bool = True,
        work: asyncio.Task[None] | ChainedCall | None = None,
    ) -> RunningAttempt | None:
        """Put the attempt on the board; return None if it has ended meanwhile.

        `called`: the function is called right after this, in this process, and its time-out starts. Otherwise the
        attempt is prepared first, or runs in a process of its own, and `_set_called` follows.
        """
        claimed = held.claimed
        if attempt.task.workflow is not None:
            attempt.context.claimed_at = held.claimed_at
        timeout = attempt.task.options.timeout
        if called:
            deadline = 0.0 if timeout is None else now + timeout
            called_after = now - held.claimed_at
        else:
            deadline = 0.0 if timeout is None else now + timeout + _PREPARE_MAX
            called_after = -1.0
        running = RunningAttempt(held, attempt, deadline, called, work=work)
        with self.lock:
            if held.ended:
                return None
            if called:
                held.called_at = now
            self._board.begin(
                held, claimed.job_id, claimed.attempt, now, deadline, in_process=called, called_after=called_after
            )
            self.running[held] = running
        return running

    def _set_called(self, running: RunningAttempt, *, in_process: bool) -> bool:
        """Note that the function of a prepared attempt is called now; return False if it has ended meanwhile."""
        with self.lock:
            if running.held.ended:
                return False
            running.set_called(self._board, self._clock.monotonic(), in_process=in_process)
            return True

    def end(self, held: HeldJob, ending: Ending, *, wake: bool = True) -> bool:
        """Free the slot and have the ending written; return False if the attempt had ended already."""
        if held.called_at is not None:
            ending = add_start_time(ending, held.begun_after, self._clock.monotonic() - held.called_at)
        with self.lock:
            if held.ended:
                return False
            leases_done = self.core.end((held,))
            self.ended += held.begun_at is not None
            self.running.pop(held, None)
            self._board.end(held)
            needs_claim = self.core.needs_claim
        self._flusher.end([] if ending is None else [ending], leases_done)
        if needs_claim:
            self._room.set()
        if wake:
            self.wake()
        return True

    def _end_inline(self, endings: list[_EndedJob]) -> None:
        """End many attempts that never waited and have left the board. On the loop."""
        if not endings:
            return
        with self.lock:
            written = [ending for held, ending in endings if ending is not None and not held.ended]
            leases_done = self.core.end(held for held, _ in endings)
            pop = self.running.pop
            for held, _ in endings:
                pop(held, None)
            self.ended += len(endings)
        self._flusher.end(written, leases_done)
        self._room.set()

    # -- dispatch ----------------------------------------------------------------------------------------------

    def call_on_loop(self, function: Callable[[], None]) -> None:
        """Call a function on the loop soon."""
        self._loop.call_soon_threadsafe(function)

    def wake(self) -> None:
        """Have the loop begin what can begin. Waking the loop costs a system call, so it is done once at a time."""
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._start_dispatcher)

    def _start_dispatcher(self) -> None:
        self._is_woken = False
        if self._dispatcher is None:
            self._dispatcher = self._loop.create_task(self.dispatch())
        self._busy()

    async def dispatch(self) -> None:
        """Begin what can begin, and call async functions one after another. If one of them waits, this task stays with
        it until it ends, and another task begins the rest."""
        begun = self._begun
        pause_at = self._clock.monotonic() + _TURN_MAX
        while True:
            now = self._clock.monotonic()
            if now >= pause_at:
                await asyncio.sleep(0)
                pause_at = self._clock.monotonic() + _TURN_MAX
            with self.lock:
                begun.extend(self.core.begin(now, _ROUND))
            if not begun:
                break
            self._loop_now = now
            endings: list[_EndedJob] = []
            while begun:
                held = begun.popleft()
                if held.ended:
                    continue
                try:
                    attempt = Attempt(held.claimed, self._app, self._store, self._flusher)
                    if not attempt.is_plain:
                        self._prepare_or_call(held, attempt, now)
                    elif not attempt.task.is_async:
                        self._submit_chain(held, attempt)
                    elif (waiting := self._call_inline(held, attempt, endings)) is not None:
                        self._dispatcher = None
                        self._end_inline(endings)
                        self._start_dispatcher()
                        self.end(held, await attempt.resume(waiting))
                        return
                except Exception as error:
                    self.end(held, end_attempt(held.claimed, "error", error_text(error)))
            self._end_inline(endings)
        self._dispatcher = None

    def _call_inline(self, held: HeldJob, attempt: Attempt, endings: list[_EndedJob]) -> SuspendedCoroutine | None:
        """Call an async function inside the dispatching task; return its coroutine if it waits.

        A function is called when the one before it has ended, so one reading of the clock serves both.
        """
        now = self._loop_now
        running = self.begin(held, attempt, now)
        if running is None:
            return None
        found = self._on_loop.call_inline(attempt)
        if isinstance(found, SuspendedCoroutine):
            running.work = self._dispatcher
            return found
        self._board.end(held)
        ended_at = self._loop_now = self._clock.monotonic()
        if ended_at - now >= SHORT or type(found) is Abort:
            found = add_start_time(found, held.begun_after, ended_at - now)
        endings.append((held, found))
        return None

    def _submit_chain(self, held: HeldJob, attempt: Attempt) -> None:
        self._threads.submit_chain(
            held, attempt, begin=self._begin_on_thread, end=self._end_on_thread, next_like=self._next_like
        )

    def _begin_on_thread(self, held: HeldJob, attempt: Attempt) -> RunningAttempt | None:
        return self.begin(held, attempt, self._clock.monotonic(), work=ChainedCall())

    def _end_on_thread(self, running: RunningAttempt, ending: Ending) -> None:
        self.end(running.held, ending, wake=False)

    def _next_like(self, before: Attempt) -> tuple[HeldJob, Attempt] | None:
        """Take the next job if it is a first attempt at the same task. All others are begun on the loop."""
        with self.lock:
            first = self.core.first
            found = None if first is None else first.claimed
            if found is not None and found.task == before.claimed.task and found.attempt == 1 and not found.committed:
                (held,) = self.core.begin(self._clock.monotonic(), 1)
                return held, Attempt(found, self._app, self._store, self._flusher)
        if first is not None:
            self.wake()
        return None

    # -- attempts that need preparation ------------------------------------------------------------------------

    def _prepare_or_call(self, held: HeldJob, attempt: Attempt, now: float) -> None:
        claimed = held.claimed
        if claimed.committed:
            self.end(held, Finish(claimed.job_id, claimed.attempt))
            return
        running = self.begin(held, attempt, now, called=False)
        if running is None:
            return
        if attempt.needs_preparing:
            self._threads.submit_step(running, partial(self._safely, self._prepare))
        else:
            self._call(running)

    def _safely(self, step: Callable[[RunningAttempt], None], running: RunningAttempt) -> None:
        """Take a step. If it fails, end the attempt: otherwise the job would be held for ever."""
        try:
            step(running)
        except Exception as error:
            delay = running.attempt.retry_delay()
            self.end(running.held, end_attempt(running.held.claimed, "error", error_text(error), delay))

    def _prepare(self, running: RunningAttempt) -> None:
        """Read the job's history, and record that the attempt begins if it must not be repeated blindly. On a thread.

        A job that was in a process when it died is a suspect: it runs in a process of its own.
        """
        claimed = running.held.claimed
        while not running.held.ended:
            try:
                history = self._history_of(running.attempt)
            except DatabaseError as error:
                self._backoff.failed("starting", error)
                if self._stopping.is_set():
                    self.end(running.held, end_attempt(claimed))
                continue
            if isinstance(history, DetentError):
                self.end(running.held, running.attempt.end_unprepared(history))
                return
            running.suspect, running.unknown = history.suspect, history.unknown
            if self._needs_thread(running):
                # Not by way of the loop, which an async function of another job may hold.
                self._run_on_thread(running)
            else:
                self._loop.call_soon_threadsafe(self._safely, self._call, running)
            return

    def _history_of(self, attempt: Attempt) -> AttemptHistory | DetentError:
        """Return what matters about earlier attempts. A workflow reads it together with its steps."""
        if attempt.task.workflow is None:
            return read_history(self._store, attempt.claimed, attempt.task)
        try:
            attempt.prepare()
        except (LeaseLost, StepTooNew) as refused:
            return refused
        return AttemptHistory(attempt.context.suspect)

    def _call(self, running: RunningAttempt) -> None:
        """Hand a prepared attempt to its executor. On the loop."""
        if self._needs_thread(running):
            self._threads.submit_step(running, partial(self._safely, self._run_on_thread))
        elif self._set_called(running, in_process=True):
            self._on_loop.submit(running, self._end_running)

    def _needs_thread(self, running: RunningAttempt) -> bool:
        """Return whether an attempt does not run on the loop. A thread waits for a process of its own."""
        task = running.attempt.task
        return running.suspect or task.options.process or not task.is_async

    def _run_on_thread(self, running: RunningAttempt) -> None:
        """Run a prepared attempt: its function, or the process of its own that it needs. On a thread."""
        run = running.attempt.run
        if running.attempt.task.options.process or running.suspect:
            run = partial(self._isolated.run, running, partial(self._set_called, in_process=False))
        elif not self._set_called(running, in_process=True):
            return
        self._threads.run(running, run, self._end_running)

    def _end_running(self, running: RunningAttempt, ending: Ending) -> None:
        self.end(running.held, ending)
