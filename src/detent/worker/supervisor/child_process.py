"""A child as its supervisor sees it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from detent.model.service_records import SilentRow
from detent.worker.critical_thread import start_critical_thread
from detent.worker.options import WorkerOptions
from detent.worker.supervisor.board import Board, Line
from detent.worker.supervisor.channel import Channel
from detent.worker.supervisor.child_health import Attempt, deaf_at, deaf_to, still_told
from detent.worker.supervisor.dead_child import Cause, Death, Remains
from detent.worker.supervisor.guarded_process import GuardedProcess, describe_exit

__all__ = ["ChildProcess"]

_LAST_WORDS = 1.0


class ChildProcess:
    """A running child: its process, what it told us, and what its board shows. Safe from any thread."""

    def __init__(self, options: WorkerOptions, now: float, heard: Callable[[], None]) -> None:
        self._options = options
        self._heard = heard
        self._lock = threading.Lock()
        self._leases: set[int] = set()
        self._told: dict[Attempt, float] = {}
        self._stalled: dict[Attempt, float] = {}
        self.started_at = now
        self.is_ready = False
        self.tasks: tuple[str, ...] = ()
        self.is_idle = False
        self.is_leaving = False
        self.killed: str | None = None
        self.unable: str | None = None
        self._cause: Cause = "itself"
        self.tally: dict[str, int] = {}
        self._channel, theirs = Channel.pair()
        self._board = Board.create(options.slots)
        command = [sys.executable, "-m", "detent.worker.child", str(theirs.fileno()), str(self._board.fileno)]
        try:
            inherited = [theirs.fileno(), self._board.fileno, *options.shared_fds]
            self._guarded = GuardedProcess(command, pass_fds=inherited, stdin=subprocess.PIPE)
            with self._guarded.stdin as stdin:
                stdin.write(msgspec.json.encode(options))
        finally:
            theirs.close()
        self._listener = start_critical_thread("child", self._listen)

    def _listen(self) -> None:
        for message in self._channel.messages():
            with self._lock:
                self._take(message)
            if message["kind"] in ("hello", "recycle"):
                self._heard()
        self._heard()

    def _take(self, message: dict[str, Any]) -> None:
        match message["kind"]:
            case "hello":
                self.is_ready = True
                self.tasks = tuple(message["tasks"])
            case "lease":
                self._leases.add(message["id"])
                self.is_idle = False
            case "done":
                self._leases.difference_update(message["leases"])
                self.tally = message["tally"]
            case "stopped":
                self.tally = message["tally"]
            case "idle":
                self.is_idle = message["holding"] == 0
            case "recycle":
                self.is_leaving = True
            case "unable":
                self.unable = message["why"]
            case _:
                pass

    @property
    def leases(self) -> list[int]:
        """What it holds, to be renewed; while it is at work, with what it may not have told of yet."""
        with self._lock:
            held = set(self._leases)
        return sorted(held | self._asked_for() if self.lines() else held)

    def _asked_for(self) -> set[int]:
        """The lease under which it claimed last, whether it was given anything or not; none once it is buried."""
        with suppress(ValueError):
            if (claiming := self._board.claiming()) is not None:
                return {claiming}
        return set()

    def lines(self) -> list[Line]:
        """What it is doing; nothing once it is buried. The time of a stalled attempt is over."""
        try:
            lines = self._board.lines()
        except ValueError:
            return []
        if not self._stalled:
            return lines
        return [replace(one, deadline=self._stalled.get((one.job_id, one.attempt), one.deadline)) for one in lines]

    @property
    def is_dead(self) -> bool:
        """Whether nothing of it lives."""
        return self._guarded.poll() is not None

    def lost(self, lease_id: int) -> None:
        """The reaper took this lease away. One that it never told of is none, or not yet."""
        with self._lock:
            if lease_id not in self._leases:
                return
            self._leases.discard(lease_id)
        self._channel.post("lost", leases=[lease_id])

    def cancel(self, attempts: list[Attempt], now: float) -> None:
        """Tell it to cancel these attempts. It may be told again; the first time counts."""
        self._told = still_told(self._told, self.lines(), attempts, now)
        self._channel.post("cancel", attempts=attempts)

    def stop_silent(self, silent: list[SilentRow], now: float) -> None:
        """Have it stop those of these attempts that it holds: nothing is heard of them."""
        stalled = [(one.job_id, one.attempt) for one in silent if one.kind == "stalled"]
        stale = [(one.job_id, one.attempt) for one in silent if one.kind == "stale"]
        self._stalled = still_told(self._stalled, self.lines(), stalled, now)
        self._channel.post("silent", stalled=stalled, stale=stale)

    def look_for_failures(self) -> None:
        """Have it look for failures that the application's hooks have not heard of."""
        self._channel.post("failures")

    def flush(self) -> None:
        """Send what the child had no room for: nothing that is told to a child waits for it."""
        with suppress(OSError):
            self._channel.flush()

    @property
    def is_told(self) -> bool:
        """Whether it has been sent all that it was to be told."""
        return self._channel.is_flushed

    def stop(self, grace: float) -> None:
        """Ask it to finish and go."""
        self.is_leaving = True
        self._channel.post("stop", grace=grace)

    def kill(self, why: str, cause: Cause) -> None:
        """End it now. The cause decides what becomes of its jobs."""
        if self.killed is None:
            self.killed = why
            self._cause = cause
            self._guarded.kill()

    def silent_for(self, now: float) -> float:
        """Seconds since its threads last got a turn; none while it starts."""
        try:
            return max(0.0, now - pulse) if (pulse := self._board.pulse()) else 0.0
        except ValueError:
            return 0.0

    def deaf_to(self, now: float) -> Line | None:
        """Return a job that the child should have ended by now and has not."""
        return deaf_to(self.lines(), self._told, self._options.cancel_grace, now)

    def deaf_at(self) -> float:
        """Return when it will count as deaf if it goes on with what it does now; infinity if nothing is to be ended."""
        return deaf_at(self.lines(), self._told, self._options.cancel_grace)

    def bury(self, now: float) -> tuple[str, list[Remains]]:
        """How it ended, and what it held. Once, when it is dead."""
        ended_with = describe_exit(self._guarded.wait())
        # Its last words may still be on their way.
        self._listener.join(_LAST_WORDS)
        if self.killed is not None:
            ended_with = f"{ended_with} ({self.killed})"
        lines = {line.job_id: line for line in self.lines()}
        death = Death(now, ended_with, self._cause, self.killed or "", lines, frozenset(self._told))
        held = sorted({*self.leases, *self._asked_for()})
        self._channel.close()
        self._guarded.close()
        self._board.close()
        return ended_with, [Remains(lease_id, death) for lease_id in held]
