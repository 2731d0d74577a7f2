"""The supervisor: starts children, renews for them, cleans up after them, and is the one that signals talk to.

It runs none of the user's code. Every second it renews what is due, looks at the boards of its children, serves the
database (`services`), and shows that the worker lives. SIGTERM or SIGINT: stop claiming, finish within the grace
period, hand back the rest; a second one stops at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field

import msgspec

from detent.errors import DatabaseError
from detent.model.clock import Clock
from detent.model.records import Abort, Outcome
from detent.store.contract import Store
from detent.worker.board import Board, Line
from detent.worker.channel import Channel
from detent.worker.options import WorkerOptions
from detent.worker.patience import Patience
from detent.worker.services import Services

__all__ = ["Supervisor"]

log = logging.getLogger("detent.worker")

_TICK = 0.2
_DEAF_AFTER = 2.0
_CRASH_DELAY = 1.0
_RESTART_PAUSE = 0.5


@dataclass(eq=False)
class _Process:
    """A child as its supervisor sees it."""

    process: subprocess.Popen[bytes]
    channel: Channel
    board: Board
    leases: set[int] = field(default_factory=set)
    idle: bool = False
    stopping: bool = False
    killed: str | None = None
    told: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Remains:
    """A lease of a dead child, with what its board said."""

    lease_id: int
    lines: dict[int, Line]
    ended_with: str
    killed: str | None


class Supervisor:
    """One worker: a supervisor and its children."""

    def __init__(self, store: Store, options: WorkerOptions, clock: Clock, worker_id: int) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._lock = threading.Lock()
        self._children: list[_Process] = []
        self._remains: list[_Remains] = []
        self._stop_asked = 0
        self._stopping = threading.Event()
        self._patience = Patience(clock, self._stopping)
        self._services = Services(store, options, worker_id)
        self._renewed_at = clock.monotonic()
        self._hurry = threading.Event()

    def run(self) -> int:
        """Until told to stop, or until nothing is left with `drain`; the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)
        for _ in range(self._options.processes):
            self._start_child()
        log.info(
            "worker %s: %d processes of %d slots", self._options.name, self._options.processes, self._options.slots
        )
        deadline: float | None = None
        while True:
            self._hurry.wait(_TICK)
            self._hurry.clear()
            now = self._clock.monotonic()
            if self._stop_asked and deadline is None:
                deadline = now + self._options.grace + 5.0
                self._stop_children(self._options.grace)
            if self._stop_asked > 1 or (deadline is not None and now > deadline):
                self._kill_all("told to stop at once" if self._stop_asked > 1 else "not done within the grace period")
            self._look_after_children()
            self._end_remains()
            with self._lock:
                if self._stop_asked and not self._children:
                    break
            self._renew_when_due(now)
            self._serve()
        self._services.close()
        return 0

    # -- children ----------------------------------------------------------------------------------------------

    def _start_child(self) -> None:
        channel, theirs = Channel.pair()
        board = Board.create(self._options.slots)
        argv = [sys.executable, "-m", "detent.worker.main", str(theirs.fileno()), str(board.fileno)]
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            pass_fds=(theirs.fileno(), board.fileno),
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(self._options))
        process.stdin.close()
        theirs.close()
        child = _Process(process, channel, board)
        with self._lock:
            self._children.append(child)
        threading.Thread(target=self._listen, args=(child,), name="detent-child", daemon=True).start()

    def _listen(self, child: _Process) -> None:
        for message in child.channel.messages():
            with self._lock:
                match message["kind"]:
                    case "lease":
                        child.leases.add(message["id"])
                        child.idle = False
                    case "done":
                        child.leases.difference_update(message["leases"])
                    case "idle":
                        child.idle = message["holding"] == 0
                    case "recycle":
                        child.stopping = True
                    case _:
                        pass
        self._hurry.set()

    def _look_after_children(self) -> None:
        with self._lock:
            children = list(self._children)
        for child in children:
            if child.process.poll() is not None:
                self._bury(child)
            else:
                self._check_deadlines(child)

    def _check_deadlines(self, child: _Process) -> None:
        """A child that does not end a job whose time is over is deaf: its interpreter is held by somebody."""
        now = self._clock.monotonic()
        for line in child.board.lines():
            if line.deadline and now > line.deadline + _DEAF_AFTER and child.killed is None:
                log.warning("job %d holds its process beyond its time-out; the process is ended", line.job_id)
                child.killed = "timed_out"
                _kill(child.process)

    def _bury(self, child: _Process) -> None:
        """Remember what a dead child held, and put another in its place."""
        code = child.process.returncode
        lines = {line.job_id: line for line in child.board.lines()}
        with self._lock:
            self._children.remove(child)
            left = [_Remains(lease_id, lines, _describe(code), child.killed) for lease_id in sorted(child.leases)]
            self._remains += left
        if code != 0:
            log.warning("a child ended with %s while %d of its jobs were running", _describe(code), len(lines))
        child.channel.close()
        child.board.close()
        if not self._stop_asked:
            self._stopping.wait(0 if child.stopping else _RESTART_PAUSE)
            if not self._stop_asked:
                self._start_child()

    def _end_remains(self) -> None:
        """End what dead children held: what had begun counts, what had not goes back untouched. While the database is
        away it is kept for later; if we go too, the leases run out by themselves."""
        while self._remains:
            try:
                self._end_lease(self._remains[0])
            except DatabaseError as error:
                self._patience.failed("cleaning up after a child", error)
                return
            self._remains.pop(0)

    def _end_lease(self, remains: _Remains) -> None:
        aborts = []
        for claimed in self._store.claim_find(remains.lease_id):
            if claimed.committed:
                self._store.job_recover([claimed.job_id])
                continue
            line = remains.lines.get(claimed.job_id)
            outcome: Outcome = "released"
            if line is not None and line.attempt == claimed.attempt:
                if line.deadline and self._clock.monotonic() > line.deadline:
                    outcome = "timed_out"
                elif remains.killed is None:
                    outcome = "crashed"
            aborts.append(
                Abort(
                    job_id=claimed.job_id,
                    attempt=claimed.attempt,
                    outcome=outcome,
                    error=None if outcome == "released" else f"its process ended with {remains.ended_with}",
                    delay=0.0 if outcome == "released" else _CRASH_DELAY,
                )
            )
        if aborts:
            self._store.job_abort(aborts, self._options.name)

    def _stop_children(self, grace: float) -> None:
        with self._lock:
            children = list(self._children)
        for child in children:
            child.stopping = True
            child.channel.send("stop", grace=grace)

    def _kill_all(self, why: str) -> None:
        with self._lock:
            children = list(self._children)
        for child in children:
            if child.killed is None:
                log.warning("ending a child: %s", why)
                child.killed = why
                _kill(child.process)

    # -- leases ------------------------------------------------------------------------------------------------

    def _renew_when_due(self, now: float) -> None:
        if now - self._renewed_at < self._options.lease / 3:
            return
        with self._lock:
            holders = {lease: child for child in self._children for lease in child.leases}
            begun = [line.job_id for child in self._children for line in child.board.lines()]
        if not holders:
            self._renewed_at = now
            return
        try:
            renewals = self._store.lease_renew(sorted(holders), self._options.lease, begun)
        except DatabaseError as error:
            self._patience.failed("renewing leases", error)
            return
        self._patience.worked()
        self._renewed_at = now
        for renewal in renewals:
            child = holders[renewal.lease_id]
            if not renewal.held:
                with self._lock:
                    child.leases.discard(renewal.lease_id)
                child.channel.send("lost", leases=[renewal.lease_id])
            fresh = set(renewal.cancel_requested) - child.told
            if fresh:
                child.told |= fresh
                child.channel.send("cancel", jobs=sorted(fresh))

    # -- the rest ----------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            with self._lock:
                idle = all(child.idle for child in self._children) and bool(self._children)
            left = self._services.tick(self._clock.monotonic(), asked_to_drain=self._options.drain and idle)
        except DatabaseError as error:
            self._patience.failed("serving the queue", error)
            return
        if left == 0 and self._options.drain and idle and not self._stop_asked:
            self._stop_asked = 1

    def _signalled(self, number: int, _frame: object) -> None:
        self._stop_asked += 1
        self._stopping.set()
        self._hurry.set()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The child and whatever it started in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _describe(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def host_name() -> str:
    """This machine, for people."""
    return socket.gethostname()
