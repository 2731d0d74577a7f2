"""What the demo shows on stderr while it runs: a progress bar on a terminal, otherwise a line every two seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from detent.cli import output
from detent.cli.demo.workload import Progress
from detent.model.clock import Clock

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

__all__ = ["Display", "open_display"]

_LINE_EVERY = 2.0


class Display(Protocol):
    """Shows messages and the progress of the demo."""

    def message(self, text: str) -> None:
        """Show a message."""
        ...

    def progress(self, progress: Progress) -> None:
        """Show the progress now."""
        ...


@contextmanager
def open_display(clock: Clock) -> Iterator[Display]:
    """Open the display that suits stderr."""
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
    """A progress bar, with the messages above it."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._bar = bars.add_task("jobs ended", total=None)

    def message(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False)

    def progress(self, progress: Progress) -> None:
        text = f"jobs ended, {_others(progress)}"
        self._bars.update(self._bar, total=progress.total, completed=progress.ended, description=text)


class _Lines:
    """Plain lines with the seconds since the start."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.monotonic()
        self._printed = self._started - _LINE_EVERY

    def message(self, text: str) -> None:
        output.print_note(f"{self._clock.monotonic() - self._started:5.1f} s  {text}")

    def progress(self, progress: Progress) -> None:
        now = self._clock.monotonic()
        if now - self._printed >= _LINE_EVERY:
            self._printed = now
            self.message(f"{progress.ended} of {progress.total} jobs ended, {_others(progress)}")


def _others(progress: Progress) -> str:
    return f"{progress.running} running, {progress.dead} dead"
