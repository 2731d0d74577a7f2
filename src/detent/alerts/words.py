"""How alerts are told: a headline for each, and one for many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from detent.model.alert_records import SEVERITIES, Measure, Notice, Severity
from detent.model.escape import line

__all__ = ["amount", "facts_of", "gravest", "headline", "headlines", "span"]

_NAMED_MAX = 20
_FACTS_MAX = 12
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def headline(notice: Notice) -> str:
    """One line that says what, how grave and since when."""
    lasted = (notice.at - notice.since).total_seconds()
    match notice.kind:
        case "resolved":
            word = f"RESOLVED after {span(lasted)}"
        case "still":
            word = f"STILL {notice.severity.upper()} after {span(lasted)}"
        case "firing":
            word = notice.severity.upper()
    return line(f"{word}: {notice.alert_id}: {notice.message}")


def headlines(notices: Sequence[Notice]) -> tuple[str, list[str]]:
    """The headline of a message about all of these, and a line for each; beyond twenty only how many more."""
    if len(notices) == 1:
        return headline(notices[0]), []
    kinds = Counter(one.kind for one in notices)
    what = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    lines = [headline(one) for one in notices[:_NAMED_MAX]]
    if len(notices) > _NAMED_MAX:
        lines.append(f"and {len(notices) - _NAMED_MAX} more")
    return f"{len(notices)} more alerts: {what}", lines


def gravest(notices: Sequence[Notice]) -> Severity:
    """The highest severity among these."""
    return max((one.severity for one in notices), key=SEVERITIES.index)


def facts_of(notice: Notice) -> dict[str, str]:
    """What is known besides, as short texts; what is no JSON object is one fact."""
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


def amount(measure: Measure, value: float) -> str:
    """A figure for people: a share as a percentage, a time with its unit."""
    match measure:
        case "success_rate":
            return f"{100 * value:.4g} %"
        case "oldest_ready":
            return span(value)
        case _:
            return f"{value:g}"


def span(seconds: float) -> str:
    """How long, for people: in the largest unit of which it is more than one."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
