"""A small process that stands between a worker and what it started, so that nothing outlives its starter.

Run as `python -I -S guardian.py CONTROL_FD GRACE COMMAND…`. It starts the command as the leader of a process group and
reads the control pipe. A letter `t` asks the group to end (SIGTERM) and kills it after the grace; `k`, or the end of
the file because whoever held the other end is gone, kills it at once. When the command has ended, by itself or not,
whatever is left of it is killed; on Linux that reaches those too that left the group, since they come back to the
guardian as orphans. Then the guardian ends as the command did: with its exit code, or of the same signal.

It imports nothing but the standard library, and little of that: it starts with every command.
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
    """Guard one command from its start to its end."""
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
    """A file to wait on for signals. None of them ends the guardian: a stop that is sent to everybody at once must not
    take away the one who cleans up. Handlers, unlike ignored signals, are not inherited by the command."""
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
    """Whether the command has ended. It is not taken away yet: until then nobody else can get its number."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_all(pid: int) -> int:
    """Kill what is left and wait for it; how the command ended."""
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
    """The processes whose parent is this one; orphans among them. Empty where the system does not tell."""
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
    """Linux only; elsewhere the group and the pipe have to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
