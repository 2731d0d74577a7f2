"""A script in another process with a store on the same file. Test and script talk over pipes, line by line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import TracebackType

from detent.model.records import NewJob
from tests.deadlines import scaled, until

__all__ = ["SECONDS_MAX", "Process", "eventually", "new_job"]

SECONDS_MAX = scaled(30.0)
"""Nothing here takes this long unless something is broken."""

PROLOGUE = """
import os, sys
from detent.model.clock import SystemClock
from detent.model.records import NewJob
from detent.store.sqlite.store import SqliteStore

def say(word): print(word, flush=True)
def hear(): return sys.stdin.readline().strip()
def new_job(job_id): return NewJob(id=job_id, task="t", payload="{}", nonce=1, fingerprint="f")

store = SqliteStore(sys.argv[1], clock=SystemClock())
"""


class Process:
    """A script in an interpreter of its own, with a store on the path given. Ended at the end of the block."""

    def __init__(self, script: str, path: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + script, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, word: str = "go") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ends_well(self) -> list[str]:
        """What it said until its end, which must be a good one."""
        said, _ = self._process.communicate(timeout=SECONDS_MAX)
        assert self._process.returncode == 0
        return said.split()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    until(condition, seconds=30.0, pause=0.001)


def new_job(job_id: int, payload: str = "{}") -> NewJob:
    """A job with nothing special about it."""
    return NewJob(id=job_id, task="t", payload=payload, nonce=1, fingerprint="f")
