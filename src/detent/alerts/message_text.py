"""The text of alert messages: a headline for one alert, and a summary of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from detent.model.alert_records import SEVERITIES, Measure, Notice, Severity
from detent.model.terminal_text import line

__all__ = ["duration_text", "facts_of", "figure_text", "headline", "headlines", "highest_severity"]

_NAMED_MAX = 20
_FACTS_MAX = 12
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def headline(notice: Notice) -> str:
    """Return one line that names the alert, its severity and how long it has been firing."""
    lasted = (notice.at - notice.since).total_seconds()
    match notice.kind:
        case "resolved":
            word = f"RESOLVED after {duration_text(lasted)}"
        case "still":
            word = f"STILL {notice.severity.upper()} after {duration_text(lasted)}"
        case "firing":
            word = notice.severity.upper()
    return line(f"{word}: {notice.alert_id}: {notice.message}")


def headlines(notices: Sequence[Notice]) -> tuple[str, list[str]]:
    """Return the headline of a message about all of these, and a line for each of the first twenty."""
    if len(notices) == 1:
        return headline(notices[0]), []
    kinds = Counter(one.kind for one in notices)
    what = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    lines = [headline(one) for one in notices[:_NAMED_MAX]]
    if len(notices) > _NAMED_MAX:
        lines.append(f"and {len(notices) - _NAMED_MAX} more")
    return f"{len(notices)} more alerts: {what}", lines


def highest_severity(notices: Sequence[Notice]) -> Severity:
    """Return the highest severity among these."""
    return max((one.severity for one in notices), key=SEVERITIES.index)


def facts_of(notice: Notice) -> dict[str, str]:
    """Return the facts of an alert as short texts. Facts that are not a JSON object become a single fact."""
    if notice.facts is None:
        return {}
    try:
        found: Any = msgspec.json.decode(notice.facts)
    except msgspec.DecodeError:
        found = notice.facts
    if not isinstance(found, dict):
        found = {"facts": found}
    return {line(str(name)): line(_short(value)) for name, value in list(found.items())[:_FACTS_MAX]}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else f"{text[:199]}…"


def figure_text(measure: Measure, value: float) -> str:
    """Return a measured figure as text: a share as a percentage, a time with its unit."""
    match measure:
        case "success_rate":
            return f"{100 * value:.4g} %"
        case "oldest_ready":
            return duration_text(value)
        case _:
            return f"{value:g}"


def duration_text(seconds: float) -> str:
    """Return a duration as text, in the largest unit that fits."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
