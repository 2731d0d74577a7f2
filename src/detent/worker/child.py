"""The shell of a child: threads and a loop around the pure core.

The loop runs async functions and hands plain ones to threads. One thread claims, one writes (`flusher`), one listens to
the supervisor. The child never renews: its supervisor does, so a function that holds the interpreter keeps its lease.
It ends when its supervisor does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from detent.app.detent import Detent
from detent.errors import DatabaseError
from detent.model.clock import Clock
from detent.model.records import Abort, Aborted, Claimed, Finish
from detent.store.contract import Store
from detent.worker.attempt import Attempt
from detent.worker.board import Board
from detent.worker.channel import Channel
from detent.worker.core import Core, Held, Want
from detent.worker.flusher import Flusher
from detent.worker.options import WorkerOptions
from detent.worker.patience import Patience

__all__ = ["Child"]

log = logging.getLogger("detent.worker")

_BACKLOG_MAX = 5000
_IDLE_WAIT = 1.0
_TICK = 0.1


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
        self._room = threading.Event()
        self._patience = Patience(clock, self._stopping)
        self._flusher = Flusher(store, options.name, self._patience, written=self._written, aborted=self._aborted)
        self._threads = ThreadPoolExecutor(max_workers=options.slots, thread_name_prefix="detent-job")
        self._attempts: dict[int, Attempt] = {}
        self._ended = 0
        self._hung = False
        self._turn: str | None = None
        self._pump_asked = False

    def run(self) -> None:
        """Work until told to stop; return when everything in hand has ended or was handed back."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        for target in (self._claim, self._listen):
            threading.Thread(target=target, name=f"detent{target.__name__}", daemon=True).start()
        self._channel.send("hello", tasks=sorted(self._app.tasks))
        ticking = asyncio.create_task(self._tick())
        await self._done.wait()
        ticking.cancel()

    # -- claiming ----------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        """The claiming thread."""
        while not self._stopping.is_set():
            self._room.clear()
            with self._lock:
                wants = self._core.wants(self._clock.monotonic()) if self._flusher.backlog < _BACKLOG_MAX else []
            if not wants:
                self._room.wait(_TICK)
                continue
            if not self._claim_all(wants) and not self._stopping.is_set():
                self._wait_for_work(wants)

    def _claim_all(self, wants: list[Want]) -> int:
        return sum([self._claim_for(want) for want in wants])

    def _wait_for_work(self, wants: list[Want]) -> None:
        """Say that we wait, look once more, wait: so nothing slips through in between."""
        try:
            version = self._store.wake.version()
        except DatabaseError as error:
            self._patience.failed("waiting for work", error)
            return
        if not self._claim_all(wants) and not self._stopping.is_set():
            self._channel.send("idle", holding=len(self._core.held))
            self._store.wake.wait(version, _IDLE_WAIT)

    def _claim_for(self, want: Want) -> int:
        """One claim; its answer is never lost: what a failed call may have claimed is looked up and adopted."""
        lease_id = 0
        asked = False
        while not self._stopping.is_set() or asked:
            try:
                lease_id = lease_id or self._app.ids.take()[0]
                jobs = self._store.claim_find(lease_id) if asked else self._ask(lease_id, want)
            except DatabaseError as error:
                asked = lease_id != 0
                self._patience.failed("claiming", error)
                if self._stopping.is_set():
                    return 0
                continue
            self._patience.worked()
            self._took(lease_id, jobs)
            return len(jobs)
        return 0

    def _ask(self, lease_id: int, want: Want) -> list[Claimed]:
        return self._store.job_claim(
            lease_id=lease_id,
            worker=self._options.name,
            queues=want.queues,
            tasks=sorted(self._app.tasks),
            limit=want.limit,
            lease=self._options.lease,
            after_tenant=self._turn,
        )

    def _took(self, lease_id: int, jobs: list[Claimed]) -> None:
        if not jobs:
            return
        self._turn = jobs[-1].tenant
        # The supervisor must know the lease before any of its jobs begins: it renews.
        self._channel.send("lease", id=lease_id)
        with self._lock:
            self._core.claimed(lease_id, jobs)
            late = self._core.stop() if self._stopping.is_set() else []
        for held in late:
            self._end(held, _released(held.claimed))
        self._ask_pump()

    # -- carrying out ------------------------------------------------------------------------------------------

    def _ask_pump(self) -> None:
        """From any thread. Asking twice before it runs is asking once: waking the loop costs a system call."""
        if not self._pump_asked:
            self._pump_asked = True
            self._loop.call_soon_threadsafe(self._pump)

    def _pump(self) -> None:
        """Begin what can begin. On the loop."""
        self._pump_asked = False
        while True:
            with self._lock:
                now = self._clock.monotonic()
                held = self._core.begin(now)
            if held is None:
                return
            self._begin(held, now)

    def _begin(self, held: Held, now: float) -> None:
        claimed = held.claimed
        if claimed.committed:
            self._end(held, Finish(claimed.job_id, claimed.attempt))
            return
        attempt = Attempt(claimed, self._app, self._store, self._flusher)
        timeout = attempt.task.options.timeout
        deadline = now + timeout if timeout else 0.0
        attempt.line = self._board.begin(claimed.job_id, claimed.attempt, now, deadline)
        attempt.deadline = deadline
        self._attempts[claimed.job_id] = attempt
        if not attempt.task.options.idempotent:
            self._threads.submit(self._begin_durably, held, attempt)
        else:
            self._call(held, attempt)

    def _begin_durably(self, held: Held, attempt: Attempt) -> None:
        """A task that must not be repeated blindly is on record as begun before it is called."""
        claimed = held.claimed
        while True:
            try:
                answer = self._store.job_start([(claimed.job_id, claimed.attempt)])[0]
                break
            except DatabaseError as error:
                self._patience.failed("starting", error)
                if self._stopping.is_set():
                    self._end(held, _released(claimed))
                    return
        if isinstance(answer, Exception):
            self._end(held, None)
        else:
            self._loop.call_soon_threadsafe(self._call, held, attempt)

    def _call(self, held: Held, attempt: Attempt) -> None:
        if attempt.task.is_async:
            attempt.running = self._loop.create_task(attempt.run_async())
            attempt.running.add_done_callback(lambda task: self._end(held, _ending_of(task)))
        else:
            self._threads.submit(self._run_in_thread, held, attempt)

    def _run_in_thread(self, held: Held, attempt: Attempt) -> None:
        self._end(held, attempt.run())

    def _end(self, held: Held, ending: Finish | Abort | None) -> None:
        """From any thread: the slot is free, and the ending will be written."""
        with self._lock:
            if held.ended:
                return
            lease_done = self._core.end(held.job_id)
            self._ended += 1
        attempt = self._attempts.pop(held.job_id, None)
        if attempt is not None and attempt.line is not None:
            self._board.end(attempt.line)
        self._flusher.end(ending, lease_done)
        self._room.set()
        self._ask_pump()

    def _written(self, leases: list[int]) -> None:
        if leases:
            self._channel.send("done", leases=leases)

    def _aborted(self, aborted: Aborted) -> None:
        if aborted.state in ("quarantined", "failed"):
            self._app.tell_failure(aborted.job_id)

    # -- time-outs, cancels, the end ---------------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            now = self._clock.monotonic()
            for attempt in list(self._attempts.values()):
                if attempt.deadline and now >= attempt.deadline:
                    self._cut_short(attempt, "timed_out", f"timed out after {attempt.task.options.timeout:g} s")
                elif attempt.cancel_by and now >= attempt.cancel_by:
                    self._cut_short(attempt, "cancelled", "did not stop within the grace period after a cancel")
            recycle = self._hung or (self._options.max_jobs and self._ended >= self._options.max_jobs)
            if recycle and not self._stopping.is_set():
                self._channel.send("recycle", hung=self._hung)
                self._stop(self._options.grace)

    def _cut_short(self, attempt: Attempt, outcome: Any, error: str) -> None:
        held = self._core.held.get(attempt.claimed.job_id)
        if held is None:
            return
        attempt.deadline = attempt.cancel_by = 0.0
        delay = attempt.delay()
        claimed = attempt.claimed
        abort = Abort(job_id=claimed.job_id, attempt=claimed.attempt, outcome=outcome, error=error, delay=delay)
        self._end(held, abort)
        if attempt.running is not None:
            attempt.running.cancel()
        else:
            # A thread cannot be ended from outside: this child finishes what it has and makes way for a fresh one.
            self._hung = True

    def _listen(self) -> None:
        """The supervisor's voice. When it falls silent for ever, so do we."""
        handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "stop": lambda message: self._stop(message["grace"]),
            "cancel": lambda message: self._cancel(message["jobs"]),
            "lost": lambda message: self._lost(message["leases"]),
        }
        for message in self._channel.messages():
            handlers[message["kind"]](message)
        os._exit(1)

    def _cancel(self, job_ids: list[int]) -> None:
        for job_id in job_ids:
            attempt = self._attempts.get(job_id)
            if attempt is not None and not attempt.context.cancelled:
                attempt.cancel_by = self._clock.monotonic() + self._options.cancel_grace
                attempt.context.request_cancel()

    def _lost(self, leases: list[int]) -> None:
        """Taken away by the reaper: whatever these functions do now is refused; they need not be waited for."""
        for held in self._core.holding():
            if held.lease_id in leases:
                attempt = self._attempts.get(held.job_id)
                self._end(held, None)
                if attempt is not None and attempt.running is not None:
                    self._loop.call_soon_threadsafe(attempt.running.cancel)

    def _stop(self, grace: float) -> None:
        """Begin nothing more, hand the reserve back at once, and the rest when the grace is over."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._room.set()
        self._store.wake.interrupt()
        with self._lock:
            rest = self._core.stop()
        for held in rest:
            self._end(held, _released(held.claimed))
        threading.Thread(target=self._finish_within, args=(grace,), name="detent-stop", daemon=True).start()

    def _finish_within(self, grace: float) -> None:
        deadline = self._clock.monotonic() + grace
        while not self._core.idle and self._clock.monotonic() < deadline:
            self._clock.sleep(0.02)
        for held in self._core.holding():
            self._end(held, _released(held.claimed))
        written = self._flusher.flush(max(1.0, self._options.lease / 2))
        self._channel.send("stopped", written=written)
        # Threads that still run belong to jobs that were handed back: nothing they do counts any more.
        os._exit(0)


def _released(claimed: Claimed) -> Abort:
    return Abort(job_id=claimed.job_id, attempt=claimed.attempt, outcome="released")


def _ending_of(task: asyncio.Task[Finish | Abort | None]) -> Finish | Abort | None:
    return None if task.cancelled() else task.result()
