"""Starts real workers and watches them: processes, signals, conditions with a deadline."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from detent.client.job import Job
from detent.worker.options import WorkerOptions
from tests.deadlines import scaled, until
from tests.processes.tasks import make_app

__all__ = ["ROOT", "SECONDS_MAX", "Bench", "Gate", "Worker", "is_alive", "kill", "parent_of", "until"]

ROOT = Path(__file__).parents[2]
SECONDS_MAX = scaled(60.0)

T = TypeVar("T")


def is_alive(pid: int) -> bool:
    """Whether a process of that number lives; one that only waits to be taken away is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def parent_of(pid: int) -> int:
    """The process that started this one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Gate:
    """Where a function and a test meet: it says that it came in, and waits to be let go."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def entered(self, times: int = 1) -> list[int]:
        """Wait until that many attempts have come in; their process ids, oldest first."""
        return until(lambda: pids if len(pids := self._pids()) >= times else [], f"entry {times} into {self.path.name}")

    def open(self) -> None:
        """Let everybody go."""
        self.path.with_suffix(".open").touch()

    def _pids(self) -> list[int]:
        with suppress(FileNotFoundError):
            return [int(line) for line in self.path.with_suffix(".in").read_text().split()]
        return []


class Worker:
    """A running worker."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ends(self, seconds: float = SECONDS_MAX) -> int:
        """Wait for its end; its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker did not end within {seconds:g} s; it said:\n{self.log[-3000:]}") from None

    def descendants(self) -> list[int]:
        """Every process below it."""
        found, look = [], [self.process.pid]
        while look:
            with suppress(FileNotFoundError, ProcessLookupError):
                pid = look.pop()
                below = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
                found += below
                look += below
        return found

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Bench:
    """One database, its application, and the workers of one test."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory
        self.app = make_app(url)
        self._exits = ExitStack()
        self._exits.callback(self.app.close)
        self._workers = 0
        self._gates = 0
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
        self._environment["DETENT_DATABASE_URL"] = url

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def worker(self, **options: Any) -> Worker:
        """Start a worker; it does not outlive the test."""
        self._workers += 1
        chosen: dict[str, Any] = {
            "slots": 4,
            "lease": scaled(2.0),
            "grace": scaled(5.0),
            "cancel_grace": scaled(1.0),
            **options,
        }
        app = chosen.pop("app", "tests.processes.tasks:app")
        told = WorkerOptions(app=app, name=chosen.pop("name", f"w{self._workers}"), **chosen)
        log = self.directory / f"worker-{self._workers}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.processes.runner", msgspec.json.encode(told).decode()],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=self._environment,
            )
        worker = Worker(process, log)
        self._exits.callback(worker.close)
        return worker

    def drain(self, **options: Any) -> Worker:
        """Run a worker until nothing is left to do."""
        worker = self.worker(drain=True, **options)
        assert worker.ends() == 0, worker.log
        return worker

    def listen_as_systemd(self) -> Callable[[], list[str]]:
        """Stand in for systemd to the workers started from now on; what they have said so far."""
        path = str(self.directory / "notify")
        ear = self._exits.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        ear.bind(path)
        self._environment["NOTIFY_SOCKET"] = path
        heard: list[str] = []

        def listen() -> None:
            # All the while: the system keeps ten words and drops the rest.
            with suppress(OSError):
                while words := ear.recv(1000):
                    heard.append(words.decode())

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        self._exits.callback(ear.shutdown, socket.SHUT_RD)
        return lambda: heard

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `detent` on this database."""
        argv = [sys.executable, "-m", "detent.cli", *arguments]
        return subprocess.run(
            argv, capture_output=True, text=True, cwd=self.directory, env=self._environment, timeout=SECONDS_MAX
        )

    def gate(self) -> Gate:
        self._gates += 1
        return Gate(self.directory / f"gate{self._gates}")

    def send(self, task: str, **arguments: Any) -> Job[Any]:
        return self.app.enqueue(self.app.find_task(task).call(**arguments))

    def send_many(self, task: str, many: int, **arguments: Any) -> list[Job[Any]]:
        found = self.app.find_task(task)
        return self.app.enqueue_many([found.call(**arguments) for _ in range(many)])

    def outcomes(self, job: Job[Any]) -> list[str | None]:
        """How the attempts at it ended, in order."""
        return [execution.outcome for execution in job.executions()]

    def lines(self, job: Job[Any]) -> list[tuple[str, str]]:
        """What it said: level and message."""
        return [(event.level, event.message) for event in job.events()]

    def rests(self, job: Job[Any], state: str) -> Job[Any]:
        """Wait until it rests, in that state."""
        job.wait(SECONDS_MAX)
        assert job.state == state, (job.state, job.error, self.outcomes(job))
        return job

    def is_healthy(self) -> bool:
        violations = self.app.record.verify()
        assert violations == []
        return True


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
