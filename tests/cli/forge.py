"""Processes of `detent` without the wait for an interpreter: copies of one that has imported everything already.

What a test runs is a process of its own: arguments, directory, environment, standard streams and exit code are its own,
and it ends as every interpreter does. Only its beginning is quicker. Begun from nothing are those of `Shell.start` and
`Shell.at_terminal`, and those that `takes` refuses.
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

__all__ = ["Forge", "forge", "takes"]

ROOT = Path(__file__).parents[2]
REQUEST_BYTES_MAX = 100_000
STARTS_OTHERS = frozenset({"worker", "demo"})


class Forge:
    """The process that is copied. It ends when this end of the socket is closed."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.forge", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self, arguments: Sequence[str], stdin: str, directory: Path, environment: Mapping[str, str], seconds: float
    ) -> tuple[int, bytes, bytes]:
        """One command to its end: its exit code, what it said, and what it complained of."""
        word, its_word = socket.socketpair()
        with word, tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            told.write(stdin.encode())
            told.seek(0)
            with its_word:
                streams = [told.fileno(), out.fileno(), err.fileno(), its_word.fileno()]
                socket.send_fds(self._ours, [_request(arguments, str(directory), environment)], streams)
            word.settimeout(seconds)
            with word.makefile() as said:
                pid = int(said.readline())
                try:
                    code = int(said.readline())
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
def forge() -> Forge:
    """That of this test run."""
    made = Forge()
    atexit.register(made.close)
    return made


def takes(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Not what would be another interpreter, nor what starts processes itself."""
    mine = {name for name in {*os.environ, *environment} if name.startswith(("PYTHON", "LC_", "LANG"))}
    return (
        all(os.environ.get(name) == environment.get(name) for name in mine)
        and not STARTS_OTHERS & set(arguments[:1])
        and len(_request(arguments, "", environment)) < REQUEST_BYTES_MAX // 2
    )


def _request(arguments: Sequence[str], directory: str, environment: Mapping[str, str]) -> bytes:
    return json.dumps([list(arguments), directory, dict(environment)]).encode()


def _serve(theirs: socket.socket) -> int:
    """Copies itself for every request. Returns in the copies, with the exit code of the command; and at the end."""
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
            _stand_by(streams[3])
            _become(streams, *json.loads(request))
            return main()
        for stream in streams:
            os.close(stream)


def _stand_by(word: int) -> None:
    """Wait for a copy, and say how it ended. Returns in the copy."""
    pid = os.fork()
    if pid:
        os.write(word, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(word, f"{os.waitstatus_to_exitcode(status)}\n".encode())
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
