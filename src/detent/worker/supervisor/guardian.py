"""A small process between a worker and a command, so that no process of the command outlives the worker.

Run as `python -I -S guardian.py CONTROL_FD GRACE COMMAND…`. It starts the command as the leader of a process group and
reads the control pipe:

- `t` sends SIGTERM to the group, and SIGKILL after the grace period;
- `k`, or the end of the pipe because the worker is gone, sends SIGKILL at once.

When the command has ended, its remaining processes are killed. On Linux that includes those that left the group: they
become children of the guardian. Then the guardian ends as the command did, with its exit code or by the same signal.

It imports only a little of the standard library, because it starts with every command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_NOT_FOUND = 127
_NOT_EXECUTABLE = 126


def main() -> None:
    """Guard one command from start to end."""
    control, grace, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    os.set_inheritable(control, False)
    awake = _hear_signals()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    pid = _start(command)
    while not _ended(pid):
        ready, _, _ = select.select([control, awake], [], [])
        if awake in ready and signal.SIGALRM in os.read(awake, 512):
            break
        if control in ready:
            if os.read(control, 1) != b"t":
                break
            _signal_group(pid, signal.SIGTERM)
            signal.setitimer(signal.ITIMER_REAL, max(grace, 0.001))
    _end_like(_end_all(pid))


def _hear_signals() -> int:
    """Return a file that becomes readable when a signal arrives. No signal ends the guardian: a stop that is sent to
    the whole process group must not end the process that cleans up. Signals are handled and not ignored, because the
    command would inherit ignored signals."""
    awake, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, lambda *_: None)
    return awake


def _start(command: list[str]) -> int:
    guardian = os.getpid()
    pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    try:
        os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == guardian:
            os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="replace"))
        os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE)
    os._exit(1)


def _ended(pid: int) -> bool:
    """Return whether the command has ended. It is not reaped yet, so that its process id is not used again."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_all(pid: int) -> int:
    """Kill the remaining processes and wait for them; return how the command ended."""
    _signal_group(pid, signal.SIGKILL)
    ended: int | None = None
    while True:
        orphans = _children()
        for orphan in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
        if ended is not None and not orphans:
            return ended
        found, status = os.waitpid(-1, 0)
        if found == pid:
            ended = status


def _children() -> list[int]:
    """Return the child processes, orphans included; empty if the system does not list them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return []


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _end_like(status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(abs(code))


def _prctl(option: int, value: int) -> None:
    """Call prctl on Linux. Other systems have only the process group and the pipe."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
