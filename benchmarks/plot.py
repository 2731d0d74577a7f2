"""A plot of who reached what, drawn in a few lines of SVG: a panel for a work, a bar for a contender."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import median

from benchmarks.contest.contender import Database
from benchmarks.contest.quantities import amount
from benchmarks.contest.results import Results

__all__ = ["drawn"]

WIDTH, COLUMNS, LABEL, ROW, TITLE, GAP, FIGURE = 880, 2, 112, 22, 34, 24, 64
PANELS: Sequence[tuple[str, Database, str, str]] = (
    ("drain", "PostgreSQL", "per_second", "Drain, one process, jobs a second"),
    ("drain", "SQLite", "per_second", "Drain, one process, jobs a second"),
    ("bulk", "PostgreSQL", "per_second", "Enqueue in bulk, jobs a second"),
    ("bulk", "SQLite", "per_second", "Enqueue in bulk, jobs a second"),
    ("one", "PostgreSQL", "per_second", "Enqueue one by one, jobs a second"),
    ("one", "SQLite", "per_second", "Enqueue one by one, jobs a second"),
    ("writes", "PostgreSQL", "per_second", "Jobs that write a row, a second"),
    ("writes", "SQLite", "per_second", "Jobs that write a row, a second"),
    ("pick-up", "PostgreSQL", "p50_ms", "Pick-up at light load, median, ms (less is better)"),
    ("pick-up", "SQLite", "p50_ms", "Pick-up at light load, median, ms (less is better)"),
)
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #222 } .title { font-weight: 600 } .bar { fill: #b8bec9 }
.ours { fill: #2f6fde } .floor { fill: #8a93a5 } line { stroke: #222; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e6e6 } .bar { fill: #4b5364 } .ours { fill: #6ea2ff } .floor { fill: #727b8e }
  line { stroke: #e6e6e6 }
}"""


def drawn(results: Results) -> str:
    """The whole plot. A bar ends at the median; the line across its end goes from the least to the most."""
    width = (WIDTH - GAP * (COLUMNS - 1)) // COLUMNS
    parts: list[str] = []
    top, tallest = 0, 0
    for place, (work, database, value, title) in enumerate(PANELS):
        left = (place % COLUMNS) * (width + GAP)
        body, height = _panel(
            _reached(results, work, database, value), f"{database}: {title}", width, value == "p50_ms"
        )
        parts.append(f'<g transform="translate({left} {top})">{body}</g>')
        tallest = max(tallest, height)
        if place % COLUMNS == COLUMNS - 1:
            top, tallest = top + tallest + GAP, 0
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _reached(results: Results, work: str, database: Database, value: str) -> dict[str, list[float]]:
    names = dict.fromkeys(one.contender for one in results.samples if (one.work, one.database) == (work, database))
    found = {name: list(results.rounds(database, work, name, value).values()) for name in names}
    return {name: values for name, values in found.items() if values}


def _panel(reached: dict[str, list[float]], title: str, width: int, less_is_better: bool) -> tuple[str, int]:
    order = sorted(reached, key=lambda name: median(reached[name]), reverse=not less_is_better)
    most = max((max(values) for values in reached.values()), default=1.0)
    room = width - LABEL - FIGURE
    lines = [f'<text class="title" y="16">{escape(title)}</text>']
    for number, name in enumerate(order):
        values, y = reached[name], TITLE + number * ROW
        kind = {"Detent": "ours", "floor": "floor"}.get(name, "bar")
        end, least, greatest = (LABEL + room * one / most for one in (median(values), min(values), max(values)))
        lines += [
            f'<text x="{LABEL - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{end - LABEL:.1f}" height="{ROW - 7}"/>',
            f'<line x1="{least:.1f}" x2="{greatest:.1f}" y1="{y + 7.5}" y2="{y + 7.5}"/>',
            f'<text x="{greatest + 6:.1f}" y="{y + 12}">{amount(median(values))}</text>',
        ]
    if not order:
        lines.append(f'<text y="{TITLE + 12}">not run</text>')
    return "\n".join(lines), TITLE + max(1, len(order)) * ROW
