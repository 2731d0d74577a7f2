"""The child process: threads and an event loop around the runner.

The loop runs async functions and watches deadlines. One thread claims (`claimer`), one writes (`flusher`), and one
listens to the supervisor. The supervisor renews the leases, so a function that holds the interpreter keeps its lease. A
child ends when its supervisor ends.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Callable
from typing import Any

from detent.app.detent import Detent
from detent.declare.workflow import versions_continued
from detent.model.clock import Clock
from detent.model.records import Aborted, Claimed
from detent.store.contract import Store
from detent.telemetry.tracing import flush_spans
from detent.worker.attempt.endings import end_attempt, end_attempt_at_stop
from detent.worker.child.claimer import Claimer
from detent.worker.child.core import ClaimRequest
from detent.worker.child.dead_job_log import DeadJobLog
from detent.worker.child.deadline_watch import DeadlineWatch
from detent.worker.child.failure_hooks import FailureHooks
from detent.worker.child.flusher import Flusher
from detent.worker.child.lease_reports import LeaseReports
from detent.worker.child.record_reader import RecordReader
from detent.worker.child.runner import Runner
from detent.worker.critical_thread import start_critical_thread
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.supervisor.board import Board
from detent.worker.supervisor.channel import Channel

__all__ = ["Child"]

_BACKLOG_MAX = 5000
"""Results that wait to be written, above which the child claims no more jobs."""
_TICK = 0.1
"""Seconds between two checks of the deadlines."""
_BEAT_MAX = 1.0
"""Maximum number of seconds between two heartbeats on the board."""
_STOP_POLL = 0.02
_SPANS_WAIT = 2.0
"""Maximum number of seconds to wait until the spans of a trace are exported."""


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
        self._stopping = threading.Event()
        self._backoff = OutageBackoff(clock, self._stopping, longest=options.lease / 3)
        self._flusher = Flusher(
            store,
            options.name,
            self._backoff,
            lease=options.lease,
            written=self._written,
            aborted=self._aborted,
            count=board.count_write,
            clock=clock,
        )
        self._lease_reports = LeaseReports(channel)
        room = threading.Event()
        self._runner = Runner(
            app,
            store,
            options,
            board,
            clock,
            self._flusher,
            self._backoff,
            self._stopping,
            room=room,
            busy=self._set_busy,
        )
        self._claimer = Claimer(
            app,
            store,
            options,
            channel,
            board,
            clock,
            self._backoff,
            self._stopping,
            room=room,
            next_claims=self._next_claims,
            claimed=self._claimed,
            report=self._lease_reports.send,
            holding=lambda: len(self._runner.core.held),
        )
        self._watch = DeadlineWatch(self._runner, board, tick=_TICK, cancel_grace=options.cancel_grace)
        self._hooks = FailureHooks(app, store, clock, self._backoff)
        self._record_reader = RecordReader(app, store, clock, self._backoff)
        self._dead_jobs = DeadJobLog()

    def run(self) -> None:
        """Work until told to stop. The process exits in here, when all jobs held have ended or were handed back."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._is_busy = asyncio.Event()
        self._runner.open(asyncio.get_running_loop())
        start_critical_thread("heartbeat", self._beat)
        start_critical_thread("claimer", self._claimer.run)
        start_critical_thread("listener", self._listen)
        self._record_reader.start()
        versions = versions_continued(self._app.tasks)
        self._channel.send("hello", pid=os.getpid(), tasks=sorted(self._app.tasks), versions=versions)
        while True:
            await self._is_busy.wait()
            await asyncio.sleep(_TICK)
            self._check()
            if self._runner.core.is_empty and not self._watch.has_abandoned and not self._dead_jobs:
                self._is_busy.clear()

    def _beat(self) -> None:
        """Show the supervisor that the threads get their turns. They do not while a function holds the interpreter."""
        while True:
            self._board.beat(self._clock.monotonic())
            self._clock.sleep(min(_BEAT_MAX, self._options.held_up_max / 4))

    def _set_busy(self) -> None:
        """Check deadlines from now on. On the loop."""
        if not self._is_busy.is_set():
            self._watch.restart(self._clock.monotonic())
            self._is_busy.set()

    def _check(self) -> None:
        """Every tick while anything runs, on the loop."""
        now = self._clock.monotonic()
        with self._runner.lock:
            surplus = self._runner.core.take_surplus()
        self._watch.check(now)
        self._dead_jobs.write(now)
        self._runner.hand_back(surplus)
        is_used_up = 0 < self._options.max_jobs <= self._runner.ended
        if (self._watch.is_hung or is_used_up) and not self._stopping.is_set():
            self._channel.send("recycle", hung=self._watch.is_hung)
            self._stop(self._options.grace)

    # -- claims and writes -------------------------------------------------------------------------------------

    def _next_claims(self) -> list[ClaimRequest]:
        return [] if self._flusher.backlog >= _BACKLOG_MAX else self._runner.next_claims()

    def _claimed(self, lease_id: int, jobs: list[Claimed], at: float) -> None:
        self._lease_reports.add(lease_id)
        self._runner.add_claimed(lease_id, jobs, at)

    def _written(self, leases: list[int]) -> None:
        if leases:
            self._lease_reports.send_done(leases, self._flusher.tally)
        if self._claimer.is_limited:
            self._store.wake.interrupt()

    def _aborted(self, aborted: Aborted) -> None:
        if aborted.state in ("quarantined", "failed"):
            self._dead_jobs.add(aborted.job_id)
            self._runner.wake()
            self._hooks.look()

    # -- messages from the supervisor --------------------------------------------------------------------------

    def _listen(self) -> None:
        """Handle messages until the supervisor is gone; then exit."""
        handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "stop": lambda message: self._stop(message["grace"]),
            "cancel": lambda message: self._cancel(message["attempts"]),
            "silent": lambda message: self._stop_silent(message["stalled"], message["stale"]),
            "lost": lambda message: self._lose(message["leases"]),
            "failures": lambda message: self._hooks.look(),
        }
        for message in self._channel.messages():
            handlers[message["kind"]](message)
        os._exit(1)

    def _cancel(self, attempts: list[list[int]]) -> None:
        """Stop these attempts. The supervisor repeats a cancel, so one that arrives between two steps is only late.

        One that has not begun ends at once, unless earlier attempts may have left steps of a workflow to undo."""
        for held in self._runner.holding():
            if [held.job_id, held.claimed.attempt] not in attempts:
                continue
            running = self._runner.running.get(held)
            if held.begun_at is None:
                if held.claimed.attempt == 1 or self._app.find_task(held.claimed.task).workflow is None:
                    self._runner.end(held, end_attempt(held.claimed, "cancelled", "cancelled before it began"))
            elif running is not None and not running.cancel_by:
                running.cancel_by = self._clock.monotonic() + self._options.cancel_grace
                running.request_stop()

    def _stop_silent(self, stalled: list[list[int]], stale: list[list[int]]) -> None:
        """Stop attempts that wrote nothing for too long: stalled ones time out, stale ones are handed back."""
        for held in self._runner.holding():
            attempt, running = [held.job_id, held.claimed.attempt], self._runner.running.get(held)
            if attempt in stalled and running is not None:
                running.is_stalled = True
            elif attempt in stale and held.begun_at is None:
                self._runner.end(held, end_attempt(held.claimed))

    def _lose(self, leases: list[int]) -> None:
        """Drop the jobs of leases that the reaper took away. The database refuses whatever their functions still do, so
        they are stopped and not waited for."""
        for held in self._runner.holding():
            if held.lease_id in leases:
                running = self._runner.running.get(held)
                if self._runner.end(held, None) and running is not None:
                    self._runner.call_on_loop(running.stop)

    # -- stopping ----------------------------------------------------------------------------------------------

    def _stop(self, grace: float) -> None:
        """Begin no more jobs, hand back the reserved ones now, and the rest when the grace period is over."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._claimer.interrupt()
        self._runner.stop()
        start_critical_thread("stop", lambda: self._finish_within(grace))

    def _finish_within(self, grace: float) -> None:
        runner = self._runner
        deadline = self._clock.monotonic() + grace
        while not runner.core.is_empty and self._clock.monotonic() < deadline:
            self._clock.sleep(_STOP_POLL)
        for held in runner.holding():
            running = runner.running.get(held)
            risky = running is not None and not running.attempt.task.options.idempotent
            runner.end(held, end_attempt_at_stop(held.claimed, risky=risky))
        written = self._flusher.flush(max(1.0, self._options.lease / 2))
        self._dead_jobs.write(math.inf)
        self._hooks.finish(max(1.0, deadline - self._clock.monotonic()))
        flush_spans(_SPANS_WAIT)
        self._channel.send("stopped", written=written, tally=self._flusher.tally)
        # Threads that still run belong to jobs that were handed back: the database refuses whatever they do.
        os._exit(0)
