"""The shell of a child: threads and a loop around the pure core.

The loop runs async functions and hands plain ones to threads, and those that want it to a process of their own. One
thread claims (`claimer`), one writes (`flusher`), one listens to the supervisor. The child never renews: its supervisor
does, so a function that holds the interpreter keeps its lease. It ends when its supervisor does.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from detent.app.detent import Detent
from detent.errors import DatabaseError, DetentError
from detent.model.clock import Clock
from detent.model.records import Abort, Aborted, Claimed, Finish, Outcome
from detent.model.sanitize import error_text
from detent.store.contract import Store
from detent.worker.attempt.attempt import Attempt
from detent.worker.attempt.coroutine_driver import SuspendedCoroutine
from detent.worker.attempt.endings import SHORT, cut_ending, ending_of, stop_ending, with_start
from detent.worker.attempt.history import look_back
from detent.worker.attempt.time_limits import Lag, forgive, overdue, start_clock
from detent.worker.child.claimer import Claimer
from detent.worker.child.core import Core, Held, Want
from detent.worker.child.dead_job_log import DeadJobLog
from detent.worker.child.failure_hooks import FailureHooks
from detent.worker.child.flusher import Flusher
from detent.worker.child.isolated_process import IsolatedProcesses
from detent.worker.child.lease_reports import LeaseReports
from detent.worker.child.pulse import beat
from detent.worker.child.running_attempt import OnThread, RunningAttempt
from detent.worker.child.switch_interval import SwitchInterval
from detent.worker.critical_thread import start_critical_thread
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.supervisor.board import Board
from detent.worker.supervisor.channel import Channel

__all__ = ["Child"]

log = logging.getLogger("detent.worker")

_BACKLOG_MAX = 5000
_TICK = 0.1
_SLICE = 0.005
"""Seconds of carrying jobs that do not wait, until those that wait get a turn on the loop."""
_ROUND = 64  # jobs that are begun together
_START_MAX = 60.0
"""Seconds that a job may take to be prepared, before its own time begins."""
_Ending = tuple[Held, Finish | Abort | None]


class Child:
    """One process of a worker, from its first claim to its last write."""

    def __init__(
        self, app: Detent, store: Store, options: WorkerOptions, channel: Channel, board: Board, clock: Clock
    ) -> None:
        self._app = app
        self._store = store
        self._options = options
        self._channel = channel
        self._board = board
        self._clock = clock
        self._lock = threading.Lock()
        self._core = Core(
            slots=options.slots,
            reserve_max=options.reserve_max,
            queues=options.queues,
            queue_slots=options.queue_slots,
        )
        self._stopping = threading.Event()
        self._backoff = OutageBackoff(clock, self._stopping, longest=options.lease / 3)
        self._flusher = Flusher(
            store,
            options.name,
            self._backoff,
            lease=options.lease,
            written=self._written,
            aborted=self._aborted,
        )
        self._lease_reports = LeaseReports(channel)
        self._claimer = Claimer(
            app,
            store,
            options,
            channel,
            board,
            clock,
            self._backoff,
            self._stopping,
            wants=self._wants,
            took=self._took,
            tell=self._lease_reports.tell,
            holding=lambda: len(self._core.held),
        )
        self._threads = ThreadPoolExecutor(max_workers=options.slots, thread_name_prefix="detent-job")
        self._switch_interval = SwitchInterval()
        self._hooks = FailureHooks(app, store, clock, self._backoff)
        self._solos = IsolatedProcesses(options)
        self._running: dict[Held, RunningAttempt] = {}
        self._cut: list[tuple[RunningAttempt, float]] = []
        self._dead_jobs = DeadJobLog()
        self._ended = 0
        self._hung = False
        self._lag = Lag(_TICK)
        self._pump_asked = False
        self._begun: deque[Held] = deque()
        self._loop_now = 0.0
        self._carrier: asyncio.Task[None] | None = None

    def run(self) -> None:
        """Work until told to stop. The process ends in here, when everything in hand has ended or was handed back."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._occupied = asyncio.Event()
        self._process = os.getpid()
        start_critical_thread("pulse", partial(beat, self._board, self._clock, self._options.held_up_max / 4))
        start_critical_thread("claimer", self._claimer.run)
        start_critical_thread("listener", self._listen)
        self._channel.send("hello", tasks=sorted(self._app.tasks))
        while True:
            await self._occupied.wait()
            await asyncio.sleep(_TICK)
            self._look_around()
            if not (self._core.held or self._cut or self._dead_jobs):
                self._occupied.clear()

    # -- claiming ----------------------------------------------------------------------------------------------

    def _wants(self) -> list[Want]:
        if self._flusher.backlog >= _BACKLOG_MAX:
            return []
        with self._lock:
            return self._core.wants(self._clock.monotonic())

    def _took(self, lease_id: int, jobs: list[Claimed], at: float) -> None:
        self._lease_reports.took(lease_id)
        with self._lock:
            self._core.claimed(lease_id, jobs, at)
            late = self._core.stop() if self._stopping.is_set() else []
        self._hand_back(late)
        self._ask_pump()

    def _hand_back(self, unbegun: list[Held]) -> None:
        for held in unbegun:
            self._end(held, cut_ending(held, "released"))

    # -- carrying out ------------------------------------------------------------------------------------------

    def _ask_pump(self) -> None:
        """From any thread. Asking twice before it runs is asking once: waking the loop costs a system call."""
        if not self._pump_asked:
            self._pump_asked = True
            self._loop.call_soon_threadsafe(self._pump)

    def _pump(self) -> None:
        """Have somebody begin what can begin. On the loop."""
        self._pump_asked = False
        if self._carrier is None:
            self._carrier = self._loop.create_task(self._begin_all())
        if not self._occupied.is_set():
            self._lag.restart(self._clock.monotonic())
            self._occupied.set()

    async def _begin_all(self) -> None:
        """Begin what can begin, and carry what is async, one after another, until one of them waits: this task stays
        with that one to its end, and another takes over the rest."""
        begun = self._begun
        pause_at = self._clock.monotonic() + _SLICE
        while True:
            now = self._clock.monotonic()
            if now >= pause_at:
                await asyncio.sleep(0)
                pause_at = self._clock.monotonic() + _SLICE
            with self._lock:
                begun.extend(self._core.begin(now, _ROUND))
            if not begun:
                break
            self._loop_now = now
            endings: list[_Ending] = []
            while begun:
                held = begun.popleft()
                if held.ended:
                    continue
                try:
                    attempt = Attempt(held.claimed, self._app, self._store, self._flusher)
                    if not attempt.is_plain:
                        self._begin(held, attempt, now)
                    elif attempt.task.is_async:
                        waits = self._set_out(held, attempt, endings)
                        if waits is not None:
                            self._carrier = None
                            self._end_all(endings)
                            self._pump()
                            await self._stay_with(*waits)
                            return
                    else:
                        self._threads.submit(self._run_one_after_another, held, attempt)
                except Exception as error:
                    self._end(held, cut_ending(held, "error", error_text(error)))
            self._end_all(endings)
        self._carrier = None

    def _set_out(
        self, held: Held, attempt: Attempt, endings: list[_Ending]
    ) -> tuple[RunningAttempt, SuspendedCoroutine] | None:
        """Call an async function, on the loop, in the task that carries. One that waits is given back. It is called
        when the one before it in the same round has ended: one look at the clock serves both."""
        claimed = held.claimed
        timeout = attempt.task.options.timeout
        now = held.called_at = self._loop_now
        deadline = 0.0 if timeout is None else now + timeout
        after = now - held.claimed_at
        with self._lock:
            if held.ended:
                return None
            self._board.begin(held, claimed.job_id, claimed.attempt, now, deadline, here=True, after=after)
        found = attempt.set_out(self._process)
        if isinstance(found, SuspendedCoroutine):
            return RunningAttempt(held, attempt, deadline=deadline, here=True, work=self._carrier), found
        self._board.end(held)
        ended_at = self._loop_now = self._clock.monotonic()
        if ended_at - now >= SHORT or type(found) is Abort:
            found = with_start(held, found, ended_at)
        endings.append((held, found))
        return None

    async def _stay_with(self, running: RunningAttempt, waiting: SuspendedCoroutine) -> None:
        """Others are carried by another task meanwhile."""
        with self._lock:
            lost = running.held.ended
            if not lost:
                self._running[running.held] = running
        if lost:
            self._loop.call_soon(running.stop)
        self._end(running.held, await running.attempt.carry_on(waiting))

    def _begin(self, held: Held, attempt: Attempt, now: float) -> None:
        claimed = held.claimed
        if claimed.committed:
            self._end(held, Finish(claimed.job_id, claimed.attempt))
            return
        running = RunningAttempt(held, attempt)
        with self._lock:
            if held.ended:
                return
            self._board.begin(held, claimed.job_id, claimed.attempt, now, 0.0)
            self._running[held] = running
        self._start_clock(running, _START_MAX)
        if attempt.needs_preparing:
            running.work = self._threads.submit(self._safely, self._prepare, running)
        else:
            self._call(running)

    def _safely(self, step: Callable[[RunningAttempt], None], running: RunningAttempt) -> None:
        """Take a step. Whatever goes wrong in it, the attempt ends: a job that nobody ends would be held for ever."""
        try:
            step(running)
        except Exception as error:
            self._end(running.held, cut_ending(running.held, "error", error_text(error), running.attempt.delay()))

    def _start_clock(self, running: RunningAttempt, more: float = 0.0) -> None:
        """The time-out counts from now. Preparing the call has `more`; without it, the function is called now."""
        with self._lock:
            if not running.held.ended:
                start_clock(running, self._board, self._clock.monotonic(), more)

    def _prepare(self, running: RunningAttempt) -> None:
        """What a few jobs need before they are called. One that must not be repeated blindly is put on record as begun.
        One that was in a process when it died is a suspect: it is tried again in a process of its own, where it can
        take nobody with it."""
        claimed = running.held.claimed
        while not running.held.ended:
            try:
                past = look_back(self._store, claimed, running.attempt.task)
                if isinstance(past, DetentError):
                    self._end(running.held, cut_ending(running.held))
                    return
                running.suspect, running.unknown = past.suspect, past.unknown
                self._loop.call_soon_threadsafe(self._safely, self._call, running)
                return
            except DatabaseError as error:
                self._backoff.failed("starting", error)
                if self._stopping.is_set():
                    self._end(running.held, cut_ending(running.held, "released"))

    def _call(self, running: RunningAttempt) -> None:
        """On the loop."""
        attempt = running.attempt
        if attempt.task.options.process or running.suspect:
            run_apart = partial(self._solos.run, running, self._start_clock)
            running.work = self._threads.submit(self._run_in, running, run_apart)
            return
        self._start_clock(running)
        with self._lock:
            if running.held.ended:
                return
            self._board.set_here(running.held)
            running.here = True
        if attempt.task.is_async:
            running.work = self._loop.create_task(attempt.run_async(self._process))
            running.work.add_done_callback(lambda task: self._end(running.held, ending_of(task)))
        else:
            running.work = self._threads.submit(self._run_in, running, attempt.run)

    def _run_one_after_another(self, held: Held | None, attempt: Attempt) -> None:
        """On a thread: a plain function, and then whatever plain function is next. By way of the loop, each would wait
        for two other threads to get their turns."""
        with self._switch_interval.on_a_thread():
            while held is not None:
                timeout = attempt.task.options.timeout
                now = self._clock.monotonic()
                deadline = 0.0 if timeout is None else now + timeout
                running = RunningAttempt(held, attempt, deadline=deadline, here=True, work=OnThread())
                with self._lock:
                    if not held.ended:
                        held.called_at = now
                        line = held.job_id, held.claimed.attempt, now, deadline
                        self._board.begin(held, *line, here=True, after=now - held.claimed_at)
                        self._running[held] = running
                self._run_in(running, attempt.run, pump=False)
                running.work = None
                held, attempt = self._next_like(attempt)

    def _next_like(self, before: Attempt) -> tuple[Held | None, Attempt]:
        """The next job, begun, where it is a first attempt at the same task. Others are begun on the loop."""
        with self._lock:
            first = self._core.first
            found = None if first is None else first.claimed
            if found is not None and found.task == before.claimed.task and found.attempt == 1 and not found.committed:
                (held,) = self._core.begin(self._clock.monotonic(), 1)
                return held, Attempt(found, self._app, self._store, self._flusher)
        if first is not None:
            self._ask_pump()
        return None, before

    def _run_in(self, running: RunningAttempt, run: Callable[[], Finish | Abort | None], *, pump: bool = True) -> None:
        """On a thread. Whatever goes wrong around the attempt, it ends."""
        if running.held.ended:
            return
        ending: Finish | Abort | None
        try:
            ending = run()
        except BaseException as error:
            ending = cut_ending(running.held, "error", error_text(error), running.attempt.delay())
        self._end(running.held, ending, pump=pump)

    def _end(self, held: Held, ending: Finish | Abort | None, *, pump: bool = True) -> bool:
        """From any thread: the slot is free, and the ending will be written. False where it had ended already."""
        ending = with_start(held, ending, self._clock.monotonic())
        with self._lock:
            if held.ended:
                return False
            leases_done = self._core.end((held,))
            self._ended += held.begun_at is not None
            self._running.pop(held, None)
            self._board.end(held)
            hungry = self._core.is_hungry
        self._flusher.end([] if ending is None else [ending], leases_done)
        if hungry:
            self._claimer.room.set()
        if pump:
            self._ask_pump()
        return True

    def _end_all(self, endings: list[_Ending]) -> None:
        """The same for many that never waited, and have left the board. On the loop."""
        if not endings:
            return
        with self._lock:
            written = [ending for held, ending in endings if ending is not None and not held.ended]
            leases_done = self._core.end(held for held, _ in endings)
            self._ended += len(endings)
        self._flusher.end(written, leases_done)
        self._claimer.room.set()

    def _written(self, leases: list[int]) -> None:
        if leases:
            self._lease_reports.done(leases, self._flusher.tally)
        if self._claimer.limited:
            self._store.wake.interrupt()

    def _aborted(self, aborted: Aborted) -> None:
        if aborted.state in ("quarantined", "failed"):
            self._dead_jobs.add(aborted.job_id)
            self._ask_pump()
            self._hooks.look()

    # -- time-outs, cancels, the end ---------------------------------------------------------------------------

    def _look_around(self) -> None:
        """Every tick while there is anything in hand, on the loop."""
        now = self._clock.monotonic()
        with self._lock:
            forgive(self._running, self._board, self._lag.late(now), cut=len(self._cut))
            surplus = self._core.surplus()
        for running in list(self._running.values()):
            if (verdict := overdue(running, now)) is not None:
                self._cut_short(running, *verdict, now)
        self._cut = [(running, by) for running, by in self._cut if running.still_at_it]
        self._hung = self._hung or any(now >= by for _, by in self._cut)
        self._dead_jobs.say(now)
        self._hand_back(surplus)
        worn = self._options.max_jobs and self._ended >= self._options.max_jobs
        if (self._hung or worn) and not self._stopping.is_set():
            self._channel.send("recycle", hung=self._hung)
            self._stop(self._options.grace)

    def _cut_short(self, running: RunningAttempt, outcome: Outcome, error: str, now: float) -> None:
        """End the attempt whether its function ends or not. A process is killed and an async function cancelled; a
        thread can only be told. One that has not ended a grace later makes this child finish what it has and go."""
        delay = 0.0 if outcome == "released" else running.attempt.delay()
        if self._end(running.held, cut_ending(running.held, outcome, error, delay)):
            running.stop()
            self._cut.append((running, now + self._options.cancel_grace))

    def _listen(self) -> None:
        """The supervisor's voice. When it falls silent for ever, so do we."""
        handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "stop": lambda message: self._stop(message["grace"]),
            "cancel": lambda message: self._cancel(message["attempts"]),
            "silent": lambda message: self._stop_silent(message["stalled"], message["stale"]),
            "lost": lambda message: self._lost(message["leases"]),
            "failures": lambda message: self._hooks.look(),
        }
        for message in self._channel.messages():
            handlers[message["kind"]](message)
        os._exit(1)

    def _cancel(self, attempts: list[list[int]]) -> None:
        """Stop these attempts. The supervisor tells again, so a cancel that comes between two steps is only late."""
        for held in self._holding():
            if [held.job_id, held.claimed.attempt] not in attempts:
                continue
            running = self._running.get(held)
            if held.begun_at is None:
                self._end(held, cut_ending(held, "cancelled", "cancelled before it began"))
            elif running is not None and not running.cancel_by:
                running.cancel_by = self._clock.monotonic() + self._options.cancel_grace
                running.ask_to_stop()

    def _stop_silent(self, stalled: list[list[int]], stale: list[list[int]]) -> None:
        """Nothing was heard of these for too long: what stalled ends like a time-out, what never began goes back."""
        for held in self._holding():
            attempt, running = [held.job_id, held.claimed.attempt], self._running.get(held)
            if attempt in stalled and running is not None:
                running.is_stalled = True
            elif attempt in stale and held.begun_at is None:
                self._end(held, cut_ending(held))

    def _lost(self, leases: list[int]) -> None:
        """Taken away by the reaper: whatever these functions do now is refused; they need not be waited for."""
        for held in self._holding():
            if held.lease_id in leases:
                running = self._running.get(held)
                if self._end(held, None) and running is not None:
                    self._loop.call_soon_threadsafe(running.stop)

    def _holding(self) -> list[Held]:
        with self._lock:
            return self._core.holding()

    def _stop(self, grace: float) -> None:
        """Begin nothing more, hand the reserve back at once, and the rest when the grace is over."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._claimer.room.set()
        self._store.wake.interrupt()
        with self._lock:
            rest = self._core.stop()
        self._hand_back(rest)
        start_critical_thread("stop", lambda: self._finish_within(grace))

    def _finish_within(self, grace: float) -> None:
        deadline = self._clock.monotonic() + grace
        while not self._core.idle and self._clock.monotonic() < deadline:
            self._clock.sleep(0.02)
        for held in self._holding():
            running = self._running.get(held)
            risky = running is not None and not running.attempt.task.options.idempotent
            self._end(held, stop_ending(held, risky=risky))
        written = self._flusher.flush(max(1.0, self._options.lease / 2))
        self._dead_jobs.say(math.inf)
        self._hooks.finish(max(1.0, deadline - self._clock.monotonic()))
        self._channel.send("stopped", written=written, tally=self._flusher.tally)
        # Threads that still run belong to jobs that were handed back: nothing they do counts any more.
        os._exit(0)
