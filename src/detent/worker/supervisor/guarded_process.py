"""A process with a guardian: it, and whatever it starts, ends with whoever holds this object."""

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
    """A command under a guardian, in a session of its own. `grace` is the time between `ask` and the end by force.

    Safe from any thread. When this process ends, however it ends, the command is killed with all it started.
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
        # Unbuffered, and an object rather than a number: writing after close is an error, never a stranger's file.
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
        """Where `stdin` was a pipe."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """Where `stdout` was a pipe."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def stderr(self) -> IO[bytes]:
        """Where `stderr` was a pipe."""
        assert self._process.stderr is not None
        return self._process.stderr

    def ask(self) -> None:
        """SIGTERM to the whole group, and SIGKILL after the grace."""
        self._tell(b"t")

    def kill(self) -> None:
        """SIGKILL to all of it, now."""
        self._tell(b"k")

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while anything of it lives."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when nothing of it lives any more."""
        return self._process.wait(timeout)

    def close(self) -> None:
        """Kill what is left, wait for it, let go of the pipes."""
        self._control.close()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _tell(self, letter: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._control.write(letter)


def describe_exit(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
