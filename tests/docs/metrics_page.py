"""The page about metrics: its text is written by hand, its tables are generated."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from detent.telemetry.metric_table import PROCESS_METRICS, SECONDS_BOUNDS, SHARED_METRICS, Metric

__all__ = ["metrics_page"]

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def metrics_page() -> str:
    """Return the page with one line for each metric."""
    page = PAGE.read_text(encoding="utf-8")
    page = _filled(page, "shared", _table(SHARED_METRICS))
    page = _filled(page, "process", _table(PROCESS_METRICS))
    return _filled(page, "bounds", f"{', '.join(f'{bound:g}' for bound in SECONDS_BOUNDS)} seconds\n")


def _filled(page: str, name: str, text: str) -> str:
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = page.partition(begin)
    return before + begin + text + end + rest.partition(end)[2]


def _table(metrics: Iterable[Metric]) -> str:
    lines = ["| Metric | Kind | Labels | Meaning |", "|---|---|---|---|"]
    for one in metrics:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        lines.append(f"| `{one.name}` | {one.kind} | {labels} | {one.help} |")
    return "\n".join(lines) + "\n"
