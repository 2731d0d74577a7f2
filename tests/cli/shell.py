"""Runs `detent` as real processes on real databases, with jobs in every state."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detent.app.detent import Detent
from detent.declare.context import Context
from detent.model.records import Abort, Finish, NewEvent
from tests.cli.process_server import can_fork, process_server
from tests.deadlines import scaled

SECONDS_MAX = scaled(60)
NASTY = "red \x1b[31m back\r left \u202e right"
APP = """
from detent import Context, Detent, Lifecycle, Retry, Transition

app = Detent()
ORDER = Lifecycle(
    "order",
    means="An order.",
    states={"new": "Placed.", "paid": "Paid."},
    initial="new",
    final=frozenset({"paid"}),
    transitions=(Transition("new", "paid", "pay", "gateway", "The money came."),),
)
app.lifecycles.attach(ORDER, table="orders")


@app.task(name="add")
def add(ctx: Context, a: int, b: int) -> int:
    ctx.event("adding", a=a, b=b)
    return a + b


@app.task(name="fail", retry=Retry(0))
def fail(ctx: Context, message: str = "as it must") -> None:
    raise RuntimeError(message)
"""


@dataclass(frozen=True)
class Ended:
    """The exit code and the output of a process that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out, self.err
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The words of each line of stdout."""
        return [line.split() for line in self.out.splitlines()]


DIED_OF = """Traceback (most recent call last):
  File "shop.py", line 3, in do
    find(thing)
ValueError: no such thing"""


class Shell:
    """Runs `detent` in a directory of its own, on one database."""

    def __init__(self, directory: Path, url: str | None) -> None:
        self.directory = directory
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
        if url is not None:
            self.environment["DETENT_DATABASE_URL"] = url

    def argv(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "detent.cli", *map(str, arguments)]

    def run(self, *arguments: object, stdin: str = "", **environment: str) -> Ended:
        """Run one command to its end, without a terminal."""
        words, whole = [str(one) for one in arguments], self.environment | environment
        if can_fork(words, whole):
            code, out, err = process_server().run(words, stdin, self.directory, whole, SECONDS_MAX)
            return Ended(code, _text(out), _text(err))
        done = subprocess.run(
            self.argv(*words),
            input=stdin.encode(),
            capture_output=True,
            cwd=self.directory,
            env=whole,
            timeout=SECONDS_MAX,
        )
        return Ended(done.returncode, _text(done.stdout), _text(done.stderr))

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start one command; the caller ends it."""
        return subprocess.Popen(
            self.argv(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env=self.environment,
        )

    def at_terminal(self, *arguments: object, types: str = "", until: str = "", **environment: str) -> Ended:
        """Run one command at a terminal, with `types` as input; all its output is in `out`. With `until`, it is
        interrupted when it has printed that text."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            self.argv(*arguments),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.directory,
            env=self.environment | {"TERM": "xterm", "COLUMNS": "200"} | environment,
        )
        os.close(theirs)
        os.write(ours, types.encode())
        said = bytearray()
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux answers so when no process has the other end open
                break
            if not piece:
                break
            said += piece
            if until and until.encode() in said:
                process.send_signal(signal.SIGINT)
                until = ""
        os.close(ours)
        return Ended(process.wait(SECONDS_MAX), said.decode(), "")


def _text(said: bytes) -> str:
    return said.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


class World:
    """Jobs in every state, made through the store itself."""

    def __init__(self, url: str) -> None:
        self.app = Detent(url)
        self.app.task(name="do")(_do)
        self.app.task(name="other")(_other)
        self.app.task(name="careful", idempotent=False)(_other)

    def pending(self, task: str = "do", **options: Any) -> int:
        return self.app.enqueue_named(task, '{"n":12345678901234567890}', **options).id

    def running(self, task: str = "do", **options: Any) -> int:
        wanted = self.pending(task, **options)
        (claimed,) = self.app.store.job_claim(
            lease_id=self.app.store.ids_reserve(1), worker="w1", queues=None, tasks=[task], limit=1, lease=300
        )
        assert claimed.job_id == wanted, "another pending job stands before this one"
        return wanted

    def succeeded(self, task: str = "do", **options: Any) -> int:
        job_id = self.running(task, **options)
        self.app.store.job_finish([Finish(job_id, 1, '{"told":"well"}')], "w1")
        return job_id

    def dead(self, task: str = "do", error: str = DIED_OF, **options: Any) -> int:
        job_id = self.running(task, **options)
        self.app.store.job_abort([Abort(job_id=job_id, attempt=1, outcome="error", error=error, fatal=True)], "w1")
        return job_id

    def unknown(self) -> int:
        """Make a dead job whose side effect is unknown."""
        job_id = self.running("careful")
        self.app.store.job_start([(job_id, 1)])
        self.app.store.job_abort([Abort(job_id=job_id, attempt=1, outcome="crashed")], "w1")
        return job_id

    def says(self, job_id: int, message: str, payload: str | None = None) -> None:
        event = NewEvent(job_id=job_id, attempt=None, level="info", message=message, payload=payload)
        self.app.store.event_append([event])

    def state(self, job_id: int) -> str:
        return self.app.jobs.get(job_id).state


def _do(ctx: Context, n: int) -> None: ...


def _other(ctx: Context, n: int) -> None: ...
