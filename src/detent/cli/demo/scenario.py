"""The demo's scenario: start workers, kill one of them, and wait until all jobs have ended.

Import it after DETENT_DATABASE_URL is set, since the application reads that when it is imported.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from detent.app.detent import Detent
from detent.cli.demo.display import Display
from detent.cli.demo.workload import create_ledger, enqueue_all, read_progress, running_by_worker
from detent.cli.failures import CommandFailed
from detent.model.clock import Clock

__all__ = ["SECONDS_MAX", "Workers", "run_scenario"]

SECONDS_MAX = 240.0
"""It takes about a dozen seconds on an idle machine."""

_POLL_SECONDS = 0.2
_KILL_AFTER = 0.25
"""The share of jobs that have ended before a worker is killed."""

_APP = "detent.cli.demo.shop:app"
_OPTIONS = ("--lease", "2s", "--slots", "8", "--drain")
_LOG_LINES = 5
_STOP_SECONDS_MAX = 20.0


class Workers:
    """The demo's worker processes. They run with `--drain`, so that none is left behind if the demo is killed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._log = directory / "workers.log"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> str:
        """Start one more worker, and return its name."""
        name = f"demo-{len(self._processes) + 1}"
        with self._log.open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "detent.cli", "worker", _APP, "--name", name, *_OPTIONS],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return name

    @property
    def alive(self) -> list[str]:
        """The names of the workers that run."""
        return [name for name, process in self._processes.items() if process.poll() is None]

    def kill(self, name: str) -> int:
        """Kill a worker with SIGKILL, and return its process id."""
        process = self._processes[name]
        process.kill()
        process.wait()
        return process.pid

    def stop(self) -> None:
        """Stop all workers, and wait until they and their children have ended."""
        processes = [self._processes[name] for name in self.alive]
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(_STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log_tail(self) -> str:
        """Return the last lines that the workers logged, for an error message."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "the last log lines of the workers: " + " | ".join(lines[-_LOG_LINES:])


def run_scenario(app: Detent, workers: Workers, display: Display, clock: Clock) -> None:
    """Enqueue the jobs, start two workers, kill one that runs jobs, start another, and return when all jobs and workers
    have ended. `CommandFailed` if that takes too long, or if no worker was seen running a job."""
    deadline = clock.monotonic() + SECONDS_MAX
    create_ledger(app)
    jobs = enqueue_all(app)
    total = read_progress(app).total
    started = f"{workers.start()} and {workers.start()}"
    display.message(f"enqueued {jobs} jobs, which will enqueue {total - jobs} more; started {started}")
    killed = False
    while workers.alive:
        progress = read_progress(app)
        display.progress(progress)
        if not killed and progress.ended >= progress.total * _KILL_AFTER:
            killed = _kill_one(app, workers, display)
        if clock.monotonic() > deadline:
            raise CommandFailed(f"the demo did not end within {SECONDS_MAX:.0f} seconds; {workers.log_tail()}")
        clock.sleep(_POLL_SECONDS)
    display.progress(read_progress(app))
    if not killed:
        raise CommandFailed(f"no worker was seen running a job; {workers.log_tail()}")


def _kill_one(app: Detent, workers: Workers, display: Display) -> bool:
    """Kill a worker that runs jobs now, and start another. Return whether there was one."""
    for name, jobs in running_by_worker(app).items():
        if name in workers.alive:
            process_id = workers.kill(name)
            display.message(f"killed {name} (process {process_id}) with SIGKILL while it ran {jobs} jobs")
            display.message(f"started {workers.start()}; the {jobs} jobs are run again when their leases expire")
            return True
    return False
