"""Runs figures, each in a process of its own, as many at once as there are cores."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from detent.testing.postgres import URL_VARIABLE, start_cluster
from prove.figure import Budget, Tally, Tier
from prove.figures import FIGURES, Figure
from prove.required_points import missing_points
from prove.results import ROOT, Result, Results, machine_facts, tally_from, tally_to

__all__ = ["run_figure", "run_tier"]

_GRACE = 60.0
"""Seconds above its budget after which a figure is stopped. On top of that comes the budget again: it may be doing
one long thing, and the machine may be slow."""
_POLL = 0.2
_TAIL = 4000


@dataclass(slots=True)
class _Run:
    figure: Figure
    process: subprocess.Popen[bytes]
    to: Path
    output: Path
    budget: Budget

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.budget.began_at


def run_tier(
    tier: Tier, seed: int, figures: Sequence[Figure] = FIGURES, *, say: Callable[[str], None] = lambda _: None
) -> Results:
    """Run the figures of a tier. `say` is told when a figure begins and ends."""
    cores = os.cpu_count() or 1
    began_at = time.monotonic()
    with start_cluster() as cluster, tempfile.TemporaryDirectory(prefix="detent-prove-") as folder:
        made = machine_facts(tier, seed, _postgres_version(cluster.url))
        environment = {**os.environ, URL_VARIABLE: cluster.url, "PYTHONHASHSEED": "0"}
        waiting = sorted(figures, key=lambda one: one.seconds(tier) * one.cores, reverse=True)
        running: list[_Run] = []
        ended: dict[str, Result] = {}
        try:
            while waiting or running:
                free = cores - sum(min(one.figure.cores, cores) for one in running)
                fitting = [one for one in waiting if min(one.cores, cores) <= free]
                if fitting:
                    waiting.remove(fitting[0])
                    running.append(_start(fitting[0], tier, seed, min(fitting[0].cores, cores), folder, environment))
                    say(f"{fitting[0].id} {fitting[0].title} …")
                    continue
                time.sleep(_POLL)
                for one in [one for one in running if _is_over(one)]:
                    running.remove(one)
                    ended[one.figure.id] = result = _result(one)
                    say(
                        f"{result.id} {'clean' if result.tally.is_clean else 'FOUND SOMETHING'}, {result.seconds:.0f} s"
                    )
        finally:
            for one in running:
                _stop(one)
    results = Results(made, [ended[figure.id] for figure in figures])
    made["seconds"] = round(time.monotonic() - began_at)
    if tuple(figures) == FIGURES:
        results.missing = missing_points(results.covered, tier)
    return results


def run_figure(figure: Figure, budget: Budget, to: Path) -> None:
    """Run a figure in this process, and write its tally."""
    to.write_text(json.dumps(tally_to(figure.run(budget))))


def _start(figure: Figure, tier: Tier, seed: int, cores: int, folder: str, environment: dict[str, str]) -> _Run:
    to, output = Path(folder) / f"{figure.id}.json", Path(folder) / f"{figure.id}.log"
    budget = Budget(tier, seed, figure.seconds(tier), cores)
    command = [sys.executable, "-m", "prove", "figure", figure.id, "--tier", tier, "--seed", str(seed)]
    command += ["--seconds", str(budget.seconds), "--processes", str(cores), "--to", str(to)]
    with output.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    return _Run(figure, process, to, output, budget)


def _is_over(run: _Run) -> bool:
    if run.process.poll() is not None:
        return True
    if run.seconds > 2 * run.budget.seconds + _GRACE:
        _stop(run)
        return True
    return False


def _stop(run: _Run) -> None:
    with suppress(ProcessLookupError):
        os.killpg(run.process.pid, signal.SIGKILL)
    run.process.wait()


def _result(run: _Run) -> Result:
    """Return what it wrote. A figure that broke down proves nothing, so that counts as wrong; one that had to be
    stopped counts as stuck."""
    said = run.output.read_text(errors="replace")[-_TAIL:]
    code = run.process.returncode
    if code == 0 and run.to.exists():
        tally = tally_from(json.loads(run.to.read_text()))
        if not tally.injected and tally.is_clean:
            tally.wrong, tally.stories = 1, [f"{run.figure.module} injected nothing, so it proves nothing"]
    elif code == -signal.SIGKILL:
        tally = Tally(stuck=1, stories=[f"{run.figure.module} was stopped after {run.seconds:.0f} s.\n{said}"])
    else:
        tally = Tally(wrong=1, stories=[f"{run.figure.module} ended with exit code {code}.\n{said}"])
    return Result(run.figure.id, run.figure.title, tally, run.seconds)


def _postgres_version(url: str) -> str:
    import psycopg

    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    return str(row[0]).split(" ", maxsplit=1)[0] if row else "unknown"
