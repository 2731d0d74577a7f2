"""A process with a guardian: it ends, with everything it started, when the process that started it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from detent.worker.supervisor import guardian

__all__ = ["GuardedProcess", "describe_exit"]

_GUARDIAN = Path(guardian.__file__)


class GuardedProcess:
    """A command under a guardian, in a session of its own. `grace` is the time between `terminate` and SIGKILL.

    Safe from any thread. When this process ends, for whatever reason, the command and everything it started is killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        grace: float = 0.0,
        pass_fds: Sequence[int] = (),
        stdin: int | None = subprocess.DEVNULL,
        stdout: int | None = None,
        stderr: int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        theirs, ours = os.pipe()
        # Unbuffered, and an object instead of a number: a write after close is an error and never reaches another file.
        self._control = os.fdopen(ours, "wb", buffering=0)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_GUARDIAN), str(theirs), str(grace), *command],
                pass_fds=(theirs, *pass_fds),
                start_new_session=True,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=env,
                cwd=cwd,
            )
        except BaseException:
            self._control.close()
            raise
        finally:
            os.close(theirs)

    @property
    def stdin(self) -> IO[bytes]:
        """The command's standard input, if it is a pipe."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The command's standard output, if it is a pipe."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def stderr(self) -> IO[bytes]:
        """The command's standard error, if it is a pipe."""
        assert self._process.stderr is not None
        return self._process.stderr

    def terminate(self) -> None:
        """Send SIGTERM to the whole group, and SIGKILL after the grace period."""
        self._send(b"t")

    def kill(self) -> None:
        """Send SIGKILL to all processes now."""
        self._send(b"k")

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while any of its processes lives."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait until none of its processes lives; return the exit code."""
        return self._process.wait(timeout)

    def close(self) -> None:
        """Kill the remaining processes, wait for them, and close the pipes."""
        self._control.close()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _send(self, letter: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._control.write(letter)


def describe_exit(code: int) -> str:
    """Return an exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
