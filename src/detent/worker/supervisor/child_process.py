"""A child process as its supervisor sees it."""

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
from detent.worker.supervisor.board import Board, BoardCounters, BoardEntry
from detent.worker.supervisor.channel import Channel
from detent.worker.supervisor.child_health import (
    Attempt,
    KillCause,
    Observation,
    Verdict,
    find_deaf_at,
    judge_child,
    keep_cancels,
)
from detent.worker.supervisor.dead_child import DeadLease, Death, DeathCause
from detent.worker.supervisor.guarded_process import GuardedProcess, describe_exit

__all__ = ["ChildProcess"]

_LAST_MESSAGES = 1.0
"""Seconds to wait for the last messages of a child that has died."""


class ChildProcess:
    """A running child: its process, what it reported, and what its board shows. Safe from any thread.

    `heard` is called after a message that the supervisor has to react to, and when the child is gone.
    """

    def __init__(self, options: WorkerOptions, now: float, heard: Callable[[], None]) -> None:
        self._options = options
        self._heard = heard
        self._lock = threading.Lock()
        self._leases: set[int] = set()
        self._cancels: dict[Attempt, float] = {}
        self._stalled: dict[Attempt, float] = {}
        self.started_at = now
        self.is_ready = False
        self.pid = 0
        """The process id of the child, which it reports when it is ready; 0 until then."""
        self.tasks: tuple[str, ...] = ()
        self.versions: dict[str, tuple[int, ...]] = {}
        self.is_idle = False
        self.is_leaving = False
        self.killed: str | None = None
        """Why the supervisor killed the child; None if it did not."""
        self.unable: str | None = None
        """Why the child could not start, as it reported."""
        self._cause: DeathCause = "itself"
        self.tally: dict[str, int] = {}
        self._channel, theirs = Channel.pair()
        self._board = Board.create(options.slots)
        command = [sys.executable, "-m", "detent.worker.child", str(theirs.fileno()), str(self._board.fileno)]
        try:
            inherited = [theirs.fileno(), self._board.fileno, *options.shared_fds]
            self._process = GuardedProcess(command, pass_fds=inherited, stdin=subprocess.PIPE)
            with self._process.stdin as stdin:
                stdin.write(msgspec.json.encode(options))
        finally:
            theirs.close()
        self._listener = start_critical_thread("child", self._listen)

    # -- what the child reports --------------------------------------------------------------------------------

    def _listen(self) -> None:
        for message in self._channel.messages():
            with self._lock:
                self._handle(message)
            if message["kind"] in ("hello", "recycle"):
                self._heard()
        self._heard()

    def _handle(self, message: dict[str, Any]) -> None:
        match message["kind"]:
            case "hello":
                self.is_ready = True
                self.pid = message["pid"]
                self.tasks = tuple(message["tasks"])
                self.versions = {task: tuple(several) for task, several in message["versions"].items()}
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
        """The leases to renew: those reported, and while jobs run also the last one claimed under, which may not have
        been reported yet."""
        with self._lock:
            held = set(self._leases)
        return sorted(held | self._last_claimed() if self.entries() else held)

    def _last_claimed(self) -> set[int]:
        """Return the lease under which the child claimed last, whether it got any job or not."""
        with suppress(ValueError):  # the board is closed
            if (claiming := self._board.claiming()) is not None:
                return {claiming}
        return set()

    def counters(self) -> BoardCounters:
        """Return what the child has counted; nothing once the board is closed."""
        try:
            return self._board.counters()
        except ValueError:
            return BoardCounters()

    def entries(self) -> list[BoardEntry]:
        """Return the jobs in progress; none once the board is closed. The deadline of a stalled attempt has passed."""
        try:
            entries = self._board.entries()
        except ValueError:
            return []
        if not self._stalled:
            return entries
        return [replace(one, deadline=self._stalled.get((one.job_id, one.attempt), one.deadline)) for one in entries]

    # -- its health --------------------------------------------------------------------------------------------

    @property
    def is_dead(self) -> bool:
        """Whether the child, and everything it started, has ended."""
        return self._process.poll() is not None

    def judge(self, now: float, renewals_waited: float | None) -> Verdict | None:
        """Return why the child has to be killed; None if it may go on. See `judge_child`."""
        seen = Observation(now, self.entries(), self._cancels, self._silent_for(now), renewals_waited)
        options = self._options
        return judge_child(seen, cancel_grace=options.cancel_grace, held_up_max=options.held_up_max)

    def find_deaf_at(self) -> float:
        """Return when the child will count as deaf if it goes on with its jobs; infinity if no job has to end."""
        return find_deaf_at(self.entries(), self._cancels, self._options.cancel_grace)

    def _silent_for(self, now: float) -> float:
        """Return the seconds since its threads last got a turn; 0 while it starts."""
        try:
            return max(0.0, now - beat) if (beat := self._board.last_beat()) else 0.0
        except ValueError:
            return 0.0

    # -- messages to the child ---------------------------------------------------------------------------------

    def drop_lease(self, lease_id: int) -> None:
        """Tell the child that the reaper took this lease away. A lease it never reported is ignored: it holds nothing,
        or nothing yet."""
        with self._lock:
            if lease_id not in self._leases:
                return
            self._leases.discard(lease_id)
        self._channel.post("lost", leases=[lease_id])

    def cancel(self, attempts: list[Attempt], now: float) -> None:
        """Tell the child to cancel these attempts. It may be told again; the first time counts."""
        self._cancels = keep_cancels(self._cancels, self.entries(), attempts, now)
        self._channel.post("cancel", attempts=attempts)

    def stop_silent(self, silent: list[SilentRow], now: float) -> None:
        """Have the child stop those of these silent attempts that it holds."""
        stalled = [(one.job_id, one.attempt) for one in silent if one.kind == "stalled"]
        stale = [(one.job_id, one.attempt) for one in silent if one.kind == "stale"]
        self._stalled = keep_cancels(self._stalled, self.entries(), stalled, now)
        self._channel.post("silent", stalled=stalled, stale=stale)

    def report_failures(self) -> None:
        """Have the child look for failures that the application's hooks were not told of."""
        self._channel.post("failures")

    def flush(self) -> None:
        """Send messages for which the child had no room. No thread ever waits for the child."""
        with suppress(OSError):
            self._channel.flush()

    @property
    def is_flushed(self) -> bool:
        """Whether every message was sent."""
        return self._channel.is_flushed

    def stop(self, grace: float) -> None:
        """Ask the child to finish its jobs and end."""
        self.is_leaving = True
        self._channel.post("stop", grace=grace)

    # -- its end -----------------------------------------------------------------------------------------------

    def kill(self, cause: KillCause, why: str) -> None:
        """Kill the child now. The cause decides what becomes of its jobs.

        The child may live on for a moment. Whatever it claimed then would only be given back, so claims are forbidden.
        """
        if self.killed is None:
            self.killed = why
            self._cause = cause
            self._board.forbid_claims()
            self._process.kill()

    def close(self, now: float) -> tuple[str, list[DeadLease]]:
        """Release a dead child; return how it ended and which leases it held."""
        ended_with = describe_exit(self._process.wait())
        # Its last messages may still be on their way.
        self._listener.join(_LAST_MESSAGES)
        if self.killed is not None:
            ended_with = f"{ended_with} ({self.killed})"
        entries = {entry.job_id: entry for entry in self.entries()}
        death = Death(now, ended_with, self._cause, self.killed or "", entries, frozenset(self._cancels))
        leases = sorted({*self.leases, *self._last_claimed()})
        self._channel.close()
        self._process.close()
        self._board.close()
        return ended_with, [DeadLease(lease_id, death) for lease_id in leases]
