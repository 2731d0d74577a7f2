"""The demo's workers: real processes, of which one is to die."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["Crew"]

_APP = "detent.cli.demo.shop:app"
_LEASE = "2s"
_SLOTS = "8"
_LOG_LINES = 5
_STOP_SECONDS_MAX = 20.0


class Crew:
    """Starts, kills and ends workers. They are told to drain, so that none stays behind whatever becomes of us."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._log = directory / "workers.log"
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> str:
        """One more worker; its name."""
        name = f"demo-{len(self._workers) + 1}"
        options = ["--name", name, "--lease", _LEASE, "--slots", _SLOTS, "--drain"]
        with self._log.open("ab") as log:
            self._workers[name] = subprocess.Popen(
                [sys.executable, "-m", "detent.cli", "worker", _APP, *options],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return name

    @property
    def at_work(self) -> list[str]:
        """The names of those alive."""
        return [name for name, process in self._workers.items() if process.poll() is None]

    def kill(self, name: str) -> int:
        """SIGKILL: no last words, no cleaning up. The number of the process it was."""
        process = self._workers[name]
        process.kill()
        process.wait()
        return process.pid

    def end(self) -> None:
        """Nobody is left after this: a worker that is told to stop goes when those it has started are gone."""
        workers = [self._workers[name] for name in self.at_work]
        for worker in workers:
            worker.terminate()
        for worker in workers:
            try:
                worker.wait(_STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()

    def last_words(self) -> str:
        """The end of what the workers logged, for a message."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "the last the workers said: " + " | ".join(lines[-_LOG_LINES:])
