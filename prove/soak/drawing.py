"""Plots of a soak: a panel for each quantity, a line for each process or size, and a mark for each fault."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from benchmarks.contest.quantities import amount
from benchmarks.plot import COLUMNS, GAP, STYLE, WIDTH
from prove.soak.verdict import Point, series, warm_up

__all__ = ["PANELS", "drawn"]

PANELS = (
    "memory of its own, MiB",
    "proportional memory, MiB",
    "open files",
    "threads",
    "connections",
    "memory of backends, MiB",
    "WAL, MiB",
    "tables and indexes, MiB",
    "file, MiB",
    "jobs and effects a second",
    "pick-up, ms",
    "log lines a second",
)
_HEIGHT, _TOP, _LEGEND, _LABEL = 130, 24, 15, 44
_POINTS_MAX = 300
_COLOURS = ("#2f6fde", "#d9822b", "#3a9d5d", "#b0419f", "#8a93a5", "#c23b3b", "#7a5cd0")
_MORE_STYLE = "polyline { fill: none; stroke-width: 1.3 } .mark { stroke: #c23b3b; stroke-opacity: .35 } "
_MORE_STYLE += ".frame { fill: none; stroke: #8a93a5; stroke-opacity: .5 } .warm { fill: #8a93a5; fill-opacity: .12 }"


def drawn(title: str, samples: Sequence[dict[str, Any]], faults: Sequence[tuple[float, str]], seconds: float) -> str:
    """Return the plots of one run as SVG. The shaded part is the warm-up."""
    width = (WIDTH - GAP * (COLUMNS - 1)) // COLUMNS
    panels = [(quantity, lines) for quantity in PANELS if (lines := series(samples, quantity))]
    marks = [time for time, _ in faults]
    parts = [f'<text class="title" y="16">{escape(title)}</text>']
    top = 2 * _TOP
    for place in range(0, len(panels), COLUMNS):
        row = panels[place : place + COLUMNS]
        for column, (quantity, lines) in enumerate(row):
            body = _panel(quantity, lines, marks, seconds, width)
            parts.append(f'<g transform="translate({column * (width + GAP)} {top})">{body}</g>')
        top += _TOP + _HEIGHT + _LEGEND * max(-(-len(lines) // 2) for _, lines in row) + 2 * GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}">'
    return "\n".join([head, f"<style>{STYLE}\n{_MORE_STYLE}</style>", *parts, "</svg>", ""])


def _panel(quantity: str, lines: dict[str, list[Point]], marks: list[float], seconds: float, width: int) -> str:
    room = width - _LABEL
    most = max((value for points in lines.values() for _, value in points), default=0.0) or 1.0

    def x(time: float) -> float:
        return _LABEL + room * min(1.0, time / seconds)

    def y(value: float) -> float:
        return _TOP + _HEIGHT * (1 - value / most)

    found = [
        f'<text y="16">{escape(quantity)}</text>',
        f'<rect class="warm" x="{_LABEL}" y="{_TOP}" width="{x(warm_up(seconds)) - _LABEL:.1f}" height="{_HEIGHT}"/>',
        f'<rect class="frame" x="{_LABEL}" y="{_TOP}" width="{room}" height="{_HEIGHT}"/>',
        f'<text x="{_LABEL - 6}" y="{_TOP + 10}" text-anchor="end">{amount(most)}</text>',
        f'<text x="{_LABEL - 6}" y="{_TOP + _HEIGHT}" text-anchor="end">0</text>',
        f'<text x="{width}" y="{_TOP + _HEIGHT + 14}" text-anchor="end">{seconds / 60:.1f} min</text>',
    ]
    found += [
        f'<line class="mark" x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{_TOP + _HEIGHT - 8}" y2="{_TOP + _HEIGHT}"/>'
        for mark in marks
    ]
    for number, (name, points) in enumerate(sorted(lines.items())):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn_points = points[:: -(-len(points) // _POINTS_MAX)]
        path = " ".join(f"{x(time):.1f},{y(value):.1f}" for time, value in drawn_points)
        left = _LABEL + (number % 2) * room / 2
        below = _TOP + _HEIGHT + 16 + _LEGEND * (1 + number // 2)
        found += [
            f'<polyline points="{path}" style="stroke: {colour}"/>',
            f'<text x="{left:.0f}" y="{below}" style="fill: {colour}">{escape(name)}: {amount(points[-1][1])}</text>',
        ]
    return "\n".join(found)
