"""The examples of a checkout: each that has a `demo.py` is run by the demo, all at the same time, on its database."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ExampleOutcome", "example_programs", "run_examples"]

_SECONDS_MAX = 240


class ExampleOutcome(NamedTuple):
    """The output of an example, and whether its exit code was 0."""

    name: str
    lines: list[str]
    succeeded: bool


def example_programs() -> list[Path]:
    """Return the programs of the examples beside this package; none if it was installed from a wheel."""
    beside = Path(__file__).parents[4] / "examples"
    return sorted(beside.glob("*/demo.py"))


def run_examples(directory: Path, url: str) -> Generator[ExampleOutcome]:
    """Run every example in its own directory below this one, all on this database, and yield the outcomes by name.
    Closing the generator interrupts those that still run, and the processes that they started."""
    running = {program.parent.name: _start(program, directory, url) for program in example_programs()}
    try:
        for name, process in running.items():
            try:
                printed, _ = process.communicate(timeout=_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                printed, _ = process.communicate()
            yield ExampleOutcome(name, printed.splitlines(), process.returncode == 0)
    finally:
        for process in running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.communicate()


def _start(program: Path, directory: Path, url: str) -> subprocess.Popen[str]:
    home = directory / f"example-{program.parent.name}"
    home.mkdir()
    return subprocess.Popen(
        [sys.executable, program, "--database", url],
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
