"""Starts `detent` quickly: processes are forked from one that has imported everything already.

Each is a process of its own, with its own arguments, directory, environment, standard streams and exit code, and it
exits as every interpreter does. Only its start is faster. `Shell.start` and `Shell.at_terminal` start a new
interpreter, and so do commands that `can_fork` refuses.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["ProcessServer", "can_fork", "process_server"]

ROOT = Path(__file__).parents[2]
REQUEST_BYTES_MAX = 100_000
START_PROCESSES = frozenset({"worker", "demo"})


class ProcessServer:
    """The process that is forked. It ends when this end of the socket is closed."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.process_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self, arguments: Sequence[str], stdin: str, directory: Path, environment: Mapping[str, str], seconds: float
    ) -> tuple[int, bytes, bytes]:
        """Run one command to its end. Return its exit code, its stdout and its stderr."""
        status, its_status = socket.socketpair()
        with status, tempfile.TemporaryFile() as inp, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            inp.write(stdin.encode())
            inp.seek(0)
            with its_status:
                streams = [inp.fileno(), out.fileno(), err.fileno(), its_status.fileno()]
                socket.send_fds(self._ours, [_request(arguments, str(directory), environment)], streams)
            status.settimeout(seconds)
            with status.makefile() as lines:
                pid = int(lines.readline())
                try:
                    code = int(lines.readline())
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    raise
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def close(self) -> None:
        self._ours.close()
        self._process.wait()


@functools.cache
def process_server() -> ProcessServer:
    """Return the server of this test run."""
    server = ProcessServer()
    atexit.register(server.close)
    return server


def can_fork(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return whether a fork behaves like a new interpreter: not if the environment of the interpreter differs, or if
    the command starts processes itself."""
    relevant = {name for name in {*os.environ, *environment} if name.startswith(("PYTHON", "LC_", "LANG"))}
    return (
        all(os.environ.get(name) == environment.get(name) for name in relevant)
        and not START_PROCESSES & set(arguments[:1])
        and len(_request(arguments, "", environment)) < REQUEST_BYTES_MAX // 2
    )


def _request(arguments: Sequence[str], directory: str, environment: Mapping[str, str]) -> bytes:
    return json.dumps([list(arguments), directory, dict(environment)]).encode()


def _serve(theirs: socket.socket) -> int:
    """Fork for every request. Returns in the forks, with the exit code of the command; and at the end."""
    from detent.cli import commands
    from detent.cli.main import main

    for module in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"{commands.__name__}.{module.name}")
    for name in ("detent.app.detent", "detent.store.sqlite.store", "detent.store.postgres.store", "rich.table"):
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, streams, _, _ = socket.recv_fds(theirs, REQUEST_BYTES_MAX, 4)
        if not request:
            return 0
        if os.fork() == 0:
            theirs.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _fork_and_report(streams[3])
            _become(streams, *json.loads(request))
            return main()
        for stream in streams:
            os.close(stream)


def _fork_and_report(status: int) -> None:
    """Fork once more: the parent reports the process id and the exit code of the child. Returns in the child."""
    pid = os.fork()
    if pid:
        os.write(status, f"{pid}\n".encode())
        _, ended = os.waitpid(pid, 0)
        os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
        os._exit(0)


def _become(streams: Sequence[int], arguments: list[str], directory: str, environment: dict[str, str]) -> None:
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["detent", *arguments]
    sys.path[0] = directory


if __name__ == "__main__":
    sys.exit(_serve(socket.socket(fileno=int(sys.argv[1]))))
