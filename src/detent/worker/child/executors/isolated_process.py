"""Runs attempts in processes of their own: for `process=True`, and for jobs that may have killed their process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from subprocess import PIPE
from typing import Any

import msgspec
from msgspec.structs import replace

from detent.model.records import Abort, Claimed, Finish
from detent.worker.attempt.endings import Ending, end_attempt
from detent.worker.child.running_attempt import RunningAttempt
from detent.worker.options import WorkerOptions
from detent.worker.supervisor.channel import Channel
from detent.worker.supervisor.guarded_process import GuardedProcess, describe_exit

__all__ = ["IsolatedExecutor", "IsolatedProcess"]


class IsolatedExecutor:
    """A pool of isolated processes. It starts a process if none is idle, and reuses idle ones."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._idle: list[IsolatedProcess] = []

    def run(self, running: RunningAttempt, set_called: Callable[[RunningAttempt], bool]) -> Ending:
        """Run the attempt in an isolated process; return how it ended. If the process dies, the attempt has crashed.

        `set_called` is called when the process is ready and the function is about to be called. It returns False if the
        attempt has ended meanwhile.
        """
        process = running.isolated = self._take()
        ending: Ending = None
        if process.wait_until_ready():
            if set_called(running):
                if running.attempt.context.cancelled:
                    process.cancel(running.held.claimed)
                ending = process.run(running)
        elif not running.held.ended:
            ending = process.end_not_started(running)
        running.release_isolated()
        self._put_back(process)
        return ending

    def _take(self) -> IsolatedProcess:
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.is_alive:
                    return process
                process.close()
        return IsolatedProcess(self._options)

    def _put_back(self, process: IsolatedProcess) -> None:
        if not process.is_alive or 0 < self._options.max_jobs <= process.jobs:
            process.close()
            return
        with self._lock:
            self._idle.append(process)


class IsolatedProcess:
    """A process that runs one attempt at a time (`attempt_process`), as seen from the child."""

    def __init__(self, options: WorkerOptions) -> None:
        self._channel, theirs = Channel.pair()
        command = [sys.executable, "-m", "detent.worker.child.attempt_process", str(theirs.fileno())]
        try:
            self._process = GuardedProcess(command, pass_fds=[theirs.fileno(), *options.shared_fds], stdin=PIPE)
            with self._process.stdin as stdin:
                stdin.write(msgspec.json.encode(options))
        finally:
            theirs.close()
        self._answers = self._channel.messages()
        self._is_ready = False
        self._is_dead = False
        self.jobs = 0

    @property
    def is_alive(self) -> bool:
        """Whether the process can take a job."""
        return not self._is_dead and self._process.poll() is None

    def wait_until_ready(self) -> bool:
        """Wait until the process has loaded the application; return whether it has."""
        if not self._is_ready:
            self._is_ready = next(self._answers, None) is not None
        return self._is_ready

    def run(self, running: RunningAttempt) -> Ending:
        """Send the job and wait until it ends."""
        claimed = running.held.claimed
        self.jobs += 1
        self._channel.send("run", claimed=msgspec.to_builtins(claimed), unknown=msgspec.to_builtins(running.unknown))
        for answer in self._answers:
            if answer["kind"] == "ended":
                return _decode_ending(answer)
        self._is_dead = True
        error = f"the process of its own ended with {describe_exit(self._process.wait())}"
        return end_attempt(claimed, "crashed", error, running.attempt.retry_delay())

    def end_not_started(self, running: RunningAttempt) -> Abort:
        """Return the ending of an attempt whose process ended before it could call the function.

        The job is not to blame, so the attempt is released. If that has happened too often, it counts as crashed:
        otherwise a process that can never start would be tried for ever.
        """
        self._is_dead = True
        claimed, attempt = running.held.claimed, running.attempt
        error = f"the process of its own could not start: it ended with {describe_exit(self._process.wait())}"
        ending = end_attempt(claimed, "crashed", error, attempt.retry_delay())
        return replace(ending, outcome="released") if claimed.spared < attempt.context.settings.spared_max else ending

    def cancel(self, claimed: Claimed) -> None:
        """Tell the function that it should stop."""
        self._channel.post("cancel", job=claimed.job_id, attempt=claimed.attempt)

    def kill(self) -> None:
        """Kill the process and everything it started."""
        self._is_dead = True
        self._process.kill()

    def close(self) -> None:
        """Release the process and its channel."""
        self._channel.close()
        self._process.close()


def _decode_ending(answer: dict[str, Any]) -> Ending:
    if answer["finish"] is not None:
        return msgspec.convert(answer["finish"], Finish)
    return None if answer["abort"] is None else msgspec.convert(answer["abort"], Abort)
