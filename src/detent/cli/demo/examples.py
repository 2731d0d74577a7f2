"""The examples in a checkout: each that has a `demo.py` tells its story, all of them at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Example", "Story", "begin", "end", "found", "told"]

_SECONDS_MAX = 240


class Example(NamedTuple):
    """One that runs: its name, and the process that plays it."""

    name: str
    process: subprocess.Popen[str]


class Story(NamedTuple):
    """What an example said, and whether it ended well."""

    name: str
    lines: Sequence[str]
    well: bool


def found() -> list[Path]:
    """The programs of the examples beside this package; none where it was installed from a wheel."""
    beside = Path(__file__).parents[4] / "examples"
    return sorted(beside.glob("*/demo.py"))


def begin(directory: Path) -> list[Example]:
    """Start every example, each in a directory of its own in this one."""
    started = []
    for program in found():
        home = directory / f"example-{program.parent.name}"
        home.mkdir()
        process = subprocess.Popen(
            [sys.executable, program],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        started.append(Example(program.parent.name, process))
    return started


def end(examples: Sequence[Example]) -> None:
    """Nobody is left after this: each is asked to stop, and takes along what it had started."""
    for example in examples:
        if example.process.poll() is None:
            example.process.send_signal(signal.SIGINT)
            example.process.communicate()


def told(example: Example) -> Story:
    """The story of one, when it has come to its end; one that does not is ended."""
    try:
        said, _ = example.process.communicate(timeout=_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        example.process.send_signal(signal.SIGINT)
        said, _ = example.process.communicate()
    return Story(example.name, said.splitlines(), example.process.returncode == 0)
