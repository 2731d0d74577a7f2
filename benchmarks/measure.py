"""Times, ratios, and a table that says how far they spread.

A machine is never as fast now as it was a minute ago. So contestants take turns within a repetition, and only figures
of one repetition are divided by each other.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

__all__ = ["Line", "Rates", "Stopwatch", "compare", "median_milliseconds", "say", "spread", "stopwatch", "table"]

Rates = dict[str, float]
"""The result of one contestant in one repetition: jobs per second by phase."""


class Stopwatch:
    """Seconds between begin and end."""

    seconds = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Time a block; the garbage of what came before is not its business."""
    gc.collect()
    watch = Stopwatch()
    began = time.perf_counter()
    yield watch
    watch.seconds = time.perf_counter() - began


def median_milliseconds(call: Callable[[], object], times: int) -> float:
    """Return the median time of a call, after a first one that warms up."""
    call()
    took = []
    for _ in range(times):
        with stopwatch() as watch:
            call()
        took.append(1e3 * watch.seconds)
    return median(took)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: rates of ours and of what they are held against, repetition by repetition."""

    what: str
    ours: Sequence[float]
    base: Sequence[float]
    wanted: float | None = None
    """The least ratio that would do."""

    @property
    def ratios(self) -> list[float]:
        return [ours / base for ours, base in zip(self.ours, self.base, strict=True)]

    def cells(self) -> tuple[str, ...]:
        wanted = "" if self.wanted is None else f"≥ {self.wanted:g}"
        return (
            self.what,
            spread(self.ratios, "{:.2f}"),
            wanted,
            spread(self.ours, "{:,.0f}"),
            f"{median(self.base):,.0f}",
        )


def compare(
    what: str, ours: Sequence[Rates], base: Sequence[Rates], wanted: Mapping[str, float] | None = None
) -> list[Line]:
    """A line for each phase that both of them have."""
    return [
        Line(f"{what}: {phase}", [one[phase] for one in ours], [one[phase] for one in base], (wanted or {}).get(phase))
        for phase in ours[0]
        if phase in base[0]
    ]


def spread(values: Sequence[float], form: str) -> str:
    """Median, least and most."""
    shown = [form.format(value) for value in (median(values), min(values), max(values))]
    return f"{shown[0]} [{shown[1]}..{shown[2]}]"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with even columns."""
    listed = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in listed) for column in range(len(head))]

    def written(row: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"

    ruler = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([written(listed[0]), ruler, *(written(row) for row in listed[1:])])


def say(text: str) -> None:
    """At once, since a measurement takes its time."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
