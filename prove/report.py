"""The part of docs/reliability.md that is made of the last full run."""

from __future__ import annotations

from pathlib import Path

from prove.required_points import summary
from prove.results import ROOT, Results
from prove.table import circumstances, findings, page_table

__all__ = ["BEGIN", "END", "PAGE", "publish", "rendered"]

PAGE = ROOT / "docs/reliability.md"
BEGIN, END = "<!-- made by `python -m prove report`: begin -->", "<!-- made by `python -m prove report`: end -->"


def rendered(page: str, results: Results) -> str:
    """Return the page with these results between its markers. Raises ValueError if it has no markers."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"The page must have the lines {BEGIN} and {END} once.")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    parts = [circumstances(results), page_table(results)]
    parts += [summary(results.covered, results.made["tier"])]
    if texts := list(findings(results)):
        parts += ["**Not clean:**", *(f"```\n{text}\n```" for text in texts)]
    made = "\n\n".join(parts)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def publish(results: Results, page: Path = PAGE) -> None:
    """Write the page again."""
    page.write_text(rendered(page.read_text(), results))
