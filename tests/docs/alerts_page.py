"""The page about alerts: its text is written by hand, its table of default policies is generated."""

from __future__ import annotations

from pathlib import Path

from detent.alerts.message_text import duration_text, figure_text
from detent.alerts.policies import BELOW, DEFAULTS
from detent.model.alert_records import Policy

__all__ = ["alerts_page"]

PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"
BEGIN = "<!-- policies -->\n"
END = "<!-- end of policies -->\n"
HEAD = """\
| Policy | Severity | Fires if | For each | Window | Minimum | Calm |
|---|---|---|---|---|---|---|
"""


def alerts_page() -> str:
    """Return the page with one line for each default policy."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return before + BEGIN + HEAD + "".join(_line(policy) for policy in DEFAULTS.values()) + END + after


def _line(policy: Policy) -> str:
    if policy.threshold is None:
        condition = f"event: {policy.message}"
    else:
        than = "<" if policy.measure in BELOW else ">"
        condition = f"`{policy.measure}` {than} {figure_text(policy.measure, policy.threshold)}"
    cells = (
        f"`{policy.name}`",
        policy.severity,
        condition,
        "" if policy.measure == "event" else policy.each,
        duration_text(policy.window_seconds) if policy.window_seconds else "",
        str(policy.count_min) if policy.count_min else "",
        duration_text(policy.calm_seconds),
    )
    return f"| {' | '.join(cells)} |\n"
