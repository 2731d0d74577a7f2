"""Draw a sequence diagram of Mermaid as SVG, for the site, where a browser could draw it only with a script of another
host. It knows what the pages use: participants, messages (solid or dashed) and notes."""

from __future__ import annotations

import re
from html import escape

__all__ = ["sequence_svg"]

COLUMN, ROW, MARGIN = 280, 46, 130
PARTICIPANT = re.compile(r"participant (\w+) as (.+)")
MESSAGE = re.compile(r"(\w+)(--?)>>(\w+): (.+)")
NOTE = re.compile(r"Note over (\w+)(?:,(\w+))?: (.+)")
HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" '
    'font-size="13"><defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
    '<path d="M0 0 L9 4 L0 8 z" fill="#555"/></marker></defs>'
    '<rect width="{width}" height="{height}" rx="8" fill="#fff"/>'
)


def sequence_svg(text: str) -> str:
    """Return the picture of a diagram. A line that it cannot draw is refused with ValueError."""
    first, *lines = [line.strip() for line in text.strip().splitlines()]
    if first != "sequenceDiagram":
        raise ValueError(f"{first!r} begins no sequence diagram")
    named = [found.groups() for line in lines if (found := PARTICIPANT.fullmatch(line))]
    x = {name: MARGIN + COLUMN * number for number, (name, _) in enumerate(named)}
    steps = [line for line in lines if not PARTICIPANT.fullmatch(line)]
    width, height = 2 * MARGIN + COLUMN * (len(named) - 1), 80 + ROW * len(steps)
    parts = [HEAD.format(width=width, height=height)]
    for name, title in named:
        parts.append(_box(x[name], 24, 180, title, "#e8eefc"))
        parts.append(f'<path d="M{x[name]} 40 V{height - 12}" stroke="#999" stroke-dasharray="3 4"/>')
    parts += [_step(line, x, 84 + ROW * number) for number, line in enumerate(steps)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _step(line: str, x: dict[str, int], y: int) -> str:
    if found := NOTE.fullmatch(line):
        first, last, text = found.groups()
        ends = x[first], x[last or first]
        return _box(sum(ends) // 2, y, max(abs(ends[1] - ends[0]), 8 * len(text) + 24), text, "#fff6d6")
    if found := MESSAGE.fullmatch(line):
        start, dashes, end, text = found.groups()
        dash = ' stroke-dasharray="5 4"' if dashes == "--" else ""
        middle = (x[start] + x[end]) // 2
        arrow = f'<path d="M{x[start]} {y + 6} H{x[end]}" stroke="#555"{dash} marker-end="url(#head)"/>'
        return f"{_text(middle, y - 2, text)}{arrow}"
    raise ValueError(f"{line!r} is neither a message nor a note")


def _box(x: int, y: int, width: int, text: str, fill: str) -> str:
    frame = f'<rect x="{x - width // 2}" y="{y - 16}" width="{width}" height="32" rx="5" fill="{fill}" stroke="#bbb"/>'
    return frame + _text(x, y + 5, text)


def _text(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle" fill="#222">{escape(text)}</text>'
