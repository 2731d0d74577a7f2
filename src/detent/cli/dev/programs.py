"""The server and the worker of `detent dev`, as processes that end with it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence

from detent.cli import output
from detent.cli.failures import CommandFailed
from detent.model.clock import Clock
from detent.worker.supervisor.guarded_process import GuardedProcess, describe_exit

__all__ = ["Programs"]

_GRACE = 5.0
"""Seconds for running jobs to finish, and for the processes to end."""
_START_SECONDS_MAX = 60.0
_POLL_SECONDS = 0.05


class Programs:
    """The server and the worker. Both are killed if this process ends without stopping them. Changes in the console are
    recorded under the name of the actor."""

    def __init__(
        self, where: str, environment: dict[str, str], clock: Clock, *, host: str, port: int, actor: str
    ) -> None:
        self._where = where
        self._environment = environment
        self._clock = clock
        self._host, self._port, self._actor = host, port, actor
        self._running: dict[str, GuardedProcess] = {}
        self._printed = b""

    def start(self) -> str:
        """Start both, and return the URL of the server. `CommandFailed` if it does not start."""
        address = ["--host", self._host, "--port", str(self._port), "--json", "--actor", self._actor]
        server = self._start("server", address, stdout=subprocess.PIPE)
        self._start("worker", ["--name", "dev", "--grace", f"{_GRACE:g}s"])
        url = self._read_url(server)
        self._port = int(url.rpartition(":")[2])  # the same one after every change
        return url

    def stop(self) -> None:
        """Stop the worker, which finishes its jobs, and then the server."""
        for name in ("worker", "server"):
            if (process := self._running.pop(name, None)) is not None:
                process.terminate()
                process.wait()
                process.close()

    def close(self) -> None:
        """Stop both at the same time."""
        for process in self._running.values():
            process.terminate()
        try:
            for process in self._running.values():
                process.wait()
        finally:
            # Interrupted once more: what is left is killed.
            for process in self._running.values():
                process.close()
            self._running.clear()

    def check(self) -> None:
        """Print what the application has printed in the server. `CommandFailed` if one of them has ended by itself."""
        for line in self._lines():
            output.print_text(line)
        for name, process in self._running.items():
            if (code := process.poll()) is not None:
                raise CommandFailed(f"the {name} has ended: {describe_exit(code)}")

    def _start(self, name: str, options: Sequence[str], stdout: int | None = None) -> GuardedProcess:
        command = [sys.executable, "-m", "detent.cli", name, self._where, *options]
        self._running[name] = GuardedProcess(command, grace=2 * _GRACE, env=self._environment, stdout=stdout)
        return self._running[name]

    def _read_url(self, server: GuardedProcess) -> str:
        """Return the URL that the server prints once it answers."""
        deadline = self._clock.monotonic() + _START_SECONDS_MAX
        os.set_blocking(server.stdout.fileno(), False)
        while True:
            select.select([server.stdout], [], [], _POLL_SECONDS)
            for line in self._lines():
                if (url := _url_in(line)) is not None:
                    return url
                output.print_text(line)
            self.check()
            if self._clock.monotonic() > deadline:
                raise CommandFailed(f"the server did not start within {_START_SECONDS_MAX:.0f} seconds")

    def _lines(self) -> list[str]:
        """Return the lines that the server has printed since the last call: what the application prints, mostly."""
        server = self._running.get("server")
        self._printed += (server.stdout.read() or b"") if server is not None else b""
        *lines, self._printed = self._printed.split(b"\n")
        return [line.decode(errors="replace") for line in lines]


def _url_in(line: str) -> str | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found["url"] if isinstance(found, dict) and isinstance(found.get("url"), str) else None
