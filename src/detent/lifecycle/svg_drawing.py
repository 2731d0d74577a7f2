"""A lifecycle as SVG: states as boxes, transitions as arrows with their triggers, and counts by state if given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from math import hypot

from detent.lifecycle.definition import Lifecycle
from detent.lifecycle.svg_layout import LINE, Arrow, Box, Point, lay_out

__all__ = ["svg"]

_MARGIN = 28.0
_START = 46.0
_FOOT = 44.0

# Every rule is scoped, since an inline style element applies to the whole page.
_STYLE = """
.detent-lc { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
.detent-lc .paper { fill: #ffffff; }
.detent-lc .box { fill: #e8f0fe; stroke: #3b6fd4; stroke-width: 1.6; }
.detent-lc .box.rests { fill: #fff4dc; stroke: #b7791f; }
.detent-lc .box.final { fill: #eceff3; stroke: #4a5568; }
.detent-lc .inner { fill: none; stroke: #4a5568; stroke-width: 1; }
.detent-lc .state { fill: #1a202c; font-size: 14px; font-weight: 600; text-anchor: middle; }
.detent-lc .arrow { fill: none; stroke: #64748b; stroke-width: 1.3; }
.detent-lc .arrow.ordinary { stroke: #2d3748; stroke-width: 2; }
.detent-lc .arrow.forced { stroke-dasharray: 5 4; }
.detent-lc .head, .detent-lc .start { fill: #64748b; }
.detent-lc .head.ordinary, .detent-lc .start { fill: #2d3748; }
.detent-lc .halo { fill: #ffffff; fill-opacity: 0.92; }
.detent-lc .label { fill: #2d3748; font-size: 12px; text-anchor: middle; }
.detent-lc .foot { fill: #4a5568; font-size: 12px; }
.detent-lc .count { fill: #3b6fd4; font-size: 13px; font-weight: 700; text-anchor: middle; }
@media (prefers-color-scheme: dark) {
.detent-lc .paper, .detent-lc .halo { fill: #11151c; }
.detent-lc .box { fill: #1b2a4a; stroke: #7aa2f7; }
.detent-lc .box.rests { fill: #3a2f17; stroke: #e0af68; }
.detent-lc .box.final { fill: #262c36; stroke: #a0aec0; }
.detent-lc .inner { stroke: #a0aec0; }
.detent-lc .state, .detent-lc .label { fill: #e2e8f0; }
.detent-lc .foot { fill: #a0aec0; }
.detent-lc .count { fill: #7aa2f7; }
.detent-lc .arrow.ordinary { stroke: #cbd5e0; }
.detent-lc .head.ordinary, .detent-lc .start { fill: #cbd5e0; }
}
"""


def svg(lifecycle: Lifecycle, counts: Mapping[str, int] | None = None) -> str:
    """Return an SVG document with every state and transition. Counts of unknown states are shown in the footer."""
    layout = lay_out(lifecycle)
    known = counts or {}
    frame = layout.frame
    left = frame.x - frame.width / 2 - _MARGIN - _START
    top = frame.y - frame.height / 2 - _MARGIN
    width = max(frame.width + 2 * _MARGIN + _START, 620.0)
    height = frame.height + 2 * _MARGIN + _FOOT
    name = escape(lifecycle.name)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="detent-lc" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}">',
        f"<title>{name}</title>",
        f"<desc>{escape(lifecycle.means)}</desc>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}"/>',
        *(line for arrow in layout.arrows for line in _line(lifecycle, arrow)),
        *_start(layout.boxes[lifecycle.initial]),
        *(line for state, box in layout.boxes.items() for line in _state(lifecycle, state, box, known.get(state))),
        *(line for arrow in layout.arrows for line in _label(arrow)),
    ]
    unknown = [f"{state} {count:,}" for state, count in known.items() if state not in layout.boxes]
    lines.extend(_foot(Point(left + _MARGIN, top + height - _MARGIN + 6), unknown))
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def _line(lifecycle: Lifecycle, arrow: Arrow) -> Iterator[str]:
    transitions = lifecycle.between(*arrow.pair)
    ordinary = " ordinary" if any(t.record == "execution" for t in transitions) else ""
    forced = " forced" if set(arrow.triggers) == {"force"} else ""
    start, control, end = arrow.curve
    length = hypot(end.x - control.x, end.y - control.y)
    along = Point((end.x - control.x) / length, (end.y - control.y) / length)
    neck = Point(end.x - 9 * along.x, end.y - 9 * along.y)
    wing = Point(-4.5 * along.y, 4.5 * along.x)
    title = "; ".join(f"{t.trigger} ({t.actor}): {t.means}" for t in transitions)
    yield f'<g data-from="{arrow.pair[0]}" data-to="{arrow.pair[1]}"><title>{escape(title)}</title>'
    yield (
        f'<path class="arrow{ordinary}{forced}" d="M{start.x:.1f},{start.y:.1f} '
        f'Q{control.x:.1f},{control.y:.1f} {neck.x:.1f},{neck.y:.1f}"/>'
    )
    yield (
        f'<path class="head{ordinary}" d="M{end.x:.1f},{end.y:.1f} L{neck.x + wing.x:.1f},{neck.y + wing.y:.1f} '
        f'L{neck.x - wing.x:.1f},{neck.y - wing.y:.1f} Z"/></g>'
    )


def _label(arrow: Arrow) -> Iterator[str]:
    box = arrow.label
    yield _rect("halo", box, 4)
    for row, trigger in enumerate(arrow.triggers):
        y = box.y + (row - (len(arrow.triggers) - 1) / 2) * LINE + 4
        yield f'<text class="label" x="{box.x:.1f}" y="{y:.1f}">{escape(trigger)}</text>'


def _start(box: Box) -> Iterator[str]:
    edge = box.x - box.width / 2
    yield f'<circle class="start" cx="{edge - 36:.1f}" cy="{box.y:.1f}" r="6"/>'
    yield f'<path class="arrow ordinary" d="M{edge - 30:.1f},{box.y:.1f} H{edge - 12:.1f}"/>'
    yield f'<path class="head ordinary" d="M{edge - 3:.1f},{box.y:.1f} l-9,-4.5 v9 Z"/>'


def _state(lifecycle: Lifecycle, state: str, box: Box, count: int | None) -> Iterator[str]:
    kind = " final" if state in lifecycle.final else " rests" if state in lifecycle.rests else ""
    yield f'<g data-state="{escape(state)}"><title>{escape(lifecycle.states[state])}</title>'
    yield _rect(f"box{kind}", box, 10)
    if state in lifecycle.final:
        yield _rect("inner", box._replace(width=box.width - 7, height=box.height - 7), 7)
    y = box.y + (5 if count is None else -2)
    yield f'<text class="state" x="{box.x:.1f}" y="{y:.1f}">{escape(state)}</text>'
    if count is not None:
        yield f'<text class="count" x="{box.x:.1f}" y="{box.y + 15:.1f}">{count:,}</text>'
    yield "</g>"


def _foot(at: Point, unknown: list[str]) -> Iterator[str]:
    """Yield the legend, and the counts of unknown states."""
    x = at.x
    for kind, words in (("box", "moves on"), ("box rests", "rests"), ("box final", "final")):
        yield _rect(kind, Box(x + 12, at.y - 4, 24, 14), 4)
        yield f'<text class="foot" x="{x + 32:.1f}" y="{at.y:.1f}">{words}</text>'
        x += 46 + 7 * len(words)
    for kind, words in (("arrow ordinary", "ordinary path"), ("arrow", "logged move"), ("arrow forced", "forced")):
        yield f'<path class="{kind}" d="M{x:.1f},{at.y - 4:.1f} h26"/>'
        yield f'<text class="foot" x="{x + 34:.1f}" y="{at.y:.1f}">{words}</text>'
        x += 48 + 7 * len(words)
    if unknown:
        text = escape("unknown to this version: " + ", ".join(unknown))
        yield f'<text class="foot" x="{at.x:.1f}" y="{at.y + 22:.1f}">{text}</text>'


def _rect(kind: str, box: Box, radius: float) -> str:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    size = f'width="{box.width:.1f}" height="{box.height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size} rx="{radius:g}"/>'
