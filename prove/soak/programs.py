"""The processes of the soak: two workers, a server and a client. One worker and the server are never struck, so their
memory, files and threads can be followed; the other worker is killed again and again."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from benchmarks.contest.processes import CHILD, family
from prove.results import ROOT
from prove.soak.application import FOLDER

__all__ = ["CALM", "CLIENT", "ISOLATED", "SERVER", "STRUCK", "Program", "Programs", "has_server"]

CALM, STRUCK, SERVER, CLIENT = "worker", "struck worker", "server", "client"
APP = "prove.soak.application:app"
ISOLATED = "isolated processes"
"""Where jobs run that may have killed their process. They are started when they are needed, and kept."""
_KINDS = {CHILD: "child", f"{CHILD}.attempt_process": ISOLATED}
_LEASE = "10s"
_STOP_SECONDS = 60.0
_READY_SECONDS = 120.0


def has_server() -> bool:
    """Return whether the HTTP server is installed."""
    return all(importlib.util.find_spec(name) for name in ("fastapi", "uvicorn", "prometheus_client"))


@dataclass
class Program:
    """A program that runs, and its log."""

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start it, again if need be; its log is continued."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def roles(self) -> dict[int, str]:
        """Return its processes, with the role of each. Guardians are left out: they are small and do nothing."""
        found = {}
        for pid in family(self.process.pid):
            if pid == self.process.pid:
                found[pid] = self.name
            elif (kind := _KINDS.get(_module(pid))) is not None:
                found[pid] = f"{self.name}, {kind}"
        return found

    def stop(self) -> int | None:
        """Ask it to end, and return its exit code; None if it had to be killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def kill(self) -> None:
        """Kill it. A worker's children end by themselves."""
        self.process.kill()
        self.process.wait()


def _module(pid: int) -> str:
    """Return the module that a process runs; empty if it runs something else."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        if words[1:2] == ["-m"]:
            return words[2]
    return ""


class Programs:
    """All of them, on one database."""

    def __init__(self, url: str, folder: Path, environment: dict[str, str]) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
        self._environment = inherited | {"DETENT_DATABASE_URL": url, FOLDER: str(folder)} | environment
        self._folder = folder
        self.all: list[Program] = []
        self.calm = self._worker(CALM)
        self.struck = self._worker(STRUCK)
        self.server_url: str | None = None
        if has_server():
            self.server_url = self._serve()
        self.client = self._add(
            CLIENT, "-m", "prove.soak.load", str(folder), *([self.server_url] if self.server_url else [])
        )

    def _worker(self, name: str) -> Program:
        options = ("--slots", "8", "--lease", _LEASE, "--grace", "20s", "--name", name.replace(" ", "-"))
        return self._add(name, "-m", "detent.cli", "worker", APP, *options)

    def _serve(self) -> str:
        server = self._add(SERVER, "-m", "detent.cli", "--json", "server", APP, "--port", "0")
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline and server.process.poll() is None:
            for line in server.log.read_text().splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    return str(json.loads(line)["url"])
            time.sleep(0.1)
        raise RuntimeError(f"the server did not start:\n{server.log.read_text()}")

    def _add(self, name: str, *words: str) -> Program:
        log = self._folder / f"{name.replace(' ', '-')}.log"
        self.all.append(Program(name, [sys.executable, *words], self._environment, log))
        return self.all[-1]

    def roles(self) -> dict[int, str]:
        """Return all processes, with the role of each."""
        return {pid: role for program in self.all for pid, role in program.roles().items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.all:
            if program.process.poll() is None:
                program.process.send_signal(signal.SIGTERM)
        for program in self.all:
            program.stop()
