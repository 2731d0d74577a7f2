"""Processes that run one attempt at a time: for `process=True`, and for jobs that may bring their process down."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from subprocess import PIPE
from typing import Any

import msgspec
from msgspec.structs import replace

from detent.model.records import Abort, Claimed, Finish
from detent.worker.child.running_attempt import RunningAttempt
from detent.worker.options import WorkerOptions
from detent.worker.supervisor.channel import Channel
from detent.worker.supervisor.guarded_process import GuardedProcess, describe_exit

__all__ = ["IsolatedProcess", "IsolatedProcesses"]


class IsolatedProcesses:
    """A pool that grows to what is needed at once: idle processes are used again, dead ones forgotten."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._idle: list[IsolatedProcess] = []

    def run(self, running: RunningAttempt, ready: Callable[[RunningAttempt], None]) -> Finish | Abort | None:
        """Carry out the attempt in a process of its own; how it ends. A process that dies ends it as crashed. `ready`
        is called when the process is there and the function is about to begin."""
        solo = running.solo = self._take()
        ending: Finish | Abort | None = None
        if solo.is_ready():
            ready(running)
            if not running.held.ended:
                if running.attempt.context.cancelled:
                    solo.cancel(running.held.claimed)
                ending = solo.run(running)
        elif not running.held.ended:
            ending = solo.not_started(running)
        running.leave_solo()
        self._give(solo)
        return ending

    def _take(self) -> IsolatedProcess:
        with self._lock:
            while self._idle:
                solo = self._idle.pop()
                if solo.is_alive:
                    return solo
                solo.close()
        return IsolatedProcess(self._options)

    def _give(self, solo: IsolatedProcess) -> None:
        if not solo.is_alive or 0 < self._options.max_jobs <= solo.jobs:
            solo.close()
            return
        with self._lock:
            self._idle.append(solo)


class IsolatedProcess:
    """One such process, seen from the child."""

    def __init__(self, options: WorkerOptions) -> None:
        self._channel, theirs = Channel.pair()
        command = [sys.executable, "-m", "detent.worker.child.attempt_process", str(theirs.fileno())]
        try:
            self._guarded = GuardedProcess(command, pass_fds=[theirs.fileno(), *options.shared_fds], stdin=PIPE)
            with self._guarded.stdin as stdin:
                stdin.write(msgspec.json.encode(options))
        finally:
            theirs.close()
        self._answers = self._channel.messages()
        self._is_ready = False
        self._killed = False
        self.jobs = 0

    @property
    def is_alive(self) -> bool:
        """Whether it can take a job."""
        return not self._killed and self._guarded.poll() is None

    def is_ready(self) -> bool:
        """Wait until it has loaded the application; whether it came that far."""
        if not self._is_ready:
            self._is_ready = next(self._answers, None) is not None
        return self._is_ready

    def run(self, running: RunningAttempt) -> Finish | Abort | None:
        """Send the job, wait for its end."""
        claimed = running.held.claimed
        self.jobs += 1
        self._channel.send("run", claimed=msgspec.to_builtins(claimed), unknown=msgspec.to_builtins(running.unknown))
        for answer in self._answers:
            if answer["kind"] == "ended":
                return _ending(answer)
        self._killed = True
        how = describe_exit(self._guarded.wait())
        return _crash(claimed, f"the process of its own ended with {how}", running.attempt.delay())

    def not_started(self, running: RunningAttempt) -> Abort:
        """Return the ending of an attempt whose process ended before it could call the function: the job is not to
        blame, and is not charged. A process that can never start must not let it go round for ever."""
        self._killed = True
        claimed, attempt = running.held.claimed, running.attempt
        error = f"the process of its own could not start: it ended with {describe_exit(self._guarded.wait())}"
        ending = _crash(claimed, error, attempt.delay())
        return replace(ending, outcome="released") if claimed.spared < attempt.context.settings.spared_max else ending

    def cancel(self, claimed: Claimed) -> None:
        """Tell the function that it should stop."""
        self._channel.post("cancel", job=claimed.job_id, attempt=claimed.attempt)

    def kill(self) -> None:
        """End it, and all it started."""
        self._killed = True
        self._guarded.kill()

    def close(self) -> None:
        """Let go of what is left of it."""
        self._channel.close()
        self._guarded.close()


def _ending(answer: dict[str, Any]) -> Finish | Abort | None:
    if answer["finish"] is not None:
        return msgspec.convert(answer["finish"], Finish)
    return None if answer["abort"] is None else msgspec.convert(answer["abort"], Abort)


def _crash(claimed: Claimed, error: str, delay: float) -> Abort:
    return Abort(job_id=claimed.job_id, attempt=claimed.attempt, outcome="crashed", error=error, delay=delay)
