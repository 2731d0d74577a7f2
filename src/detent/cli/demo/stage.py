"""What the demo shows while it runs: a bar at a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from detent.cli import render
from detent.cli.demo.books import Progress
from detent.model.clock import Clock

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

__all__ = ["Stage", "stage"]

_SAY_EVERY = 2.0


class Stage(Protocol):
    """Where the demo speaks."""

    def say(self, text: str) -> None:
        """Something happened."""
        ...

    def show(self, progress: Progress) -> None:
        """This is how far it is."""
        ...


@contextmanager
def stage(clock: Clock) -> Iterator[Stage]:
    """For whoever watches stderr."""
    if not sys.stderr.isatty():
        yield _Lines(clock)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True)) as bars:
        yield _Bar(bars)


class _Bar:
    """A bar that grows, and what happened above it."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._bar = bars.add_task("jobs at rest", total=None)

    def say(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False)

    def show(self, progress: Progress) -> None:
        told = f"jobs at rest, {_more(progress)}"
        self._bars.update(self._bar, total=progress.total, completed=progress.at_rest, description=told)


class _Lines:
    """Plain lines with the seconds since the beginning."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._said = self._began - _SAY_EVERY

    def say(self, text: str) -> None:
        render.note(f"{self._clock.monotonic() - self._began:5.1f} s  {text}")

    def show(self, progress: Progress) -> None:
        now = self._clock.monotonic()
        if now - self._said >= _SAY_EVERY:
            self._said = now
            self.say(f"{progress.at_rest} of {progress.total} jobs at rest, {_more(progress)}")


def _more(progress: Progress) -> str:
    return f"{progress.running} running, {progress.dead} dead"
