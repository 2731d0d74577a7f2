"""The report: the tables of docs/performance.md and its plot, out of results that were kept beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.contest.contender import ROOT
from benchmarks.contest.results import Results
from benchmarks.contest.rows import ROWS, Row
from benchmarks.measure import table
from benchmarks.plot import drawn

__all__ = ["HEAD", "KEPT", "PAGE", "PLOT", "publish", "rendered", "verdict"]

HEAD = ("work", "database", "target", "reached", "Detent", "beside it", "")
PAGE, PLOT, KEPT = ROOT / "docs/performance.md", ROOT / "docs/performance.svg", ROOT / "docs/performance.json"
BEGIN, END = "<!-- made from performance.json by `python -m benchmarks report` -->", "<!-- up to here -->"


def verdict(results: Results, rows: Sequence[Row] = ROWS) -> str:
    """Row by row what was to be reached, and how many rows are."""
    met = [row.is_met(results) for row in rows]
    count = f"{met.count(True)} of {len(rows)} rows met, {met.count(False)} missed, {met.count(None)} not run."
    return f"{table(HEAD, [row.cells(results) for row in rows])}\n\n{count}"


def rendered(page: str, results: Results) -> str:
    """The page with its made part made anew. Raises ValueError where it has none."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    made, size = results.made, results.size
    where = (
        f"Measured on {made['at']}, {made['cores']} cores shared by database, workers and load; "
        f"Python {made['python']}, SQLite {made['sqlite']}, PostgreSQL {made['postgresql']}. {size['rounds']} rounds; "
        f"{size['drained']:,} jobs a drain, {size['passed']:,} before a drain under a held snapshot."
    )
    absent = "".join(f" {name}: {why}." for name, why in results.missing.items())
    return f"{before}{BEGIN}\n\n{where}{absent}\n\n{verdict(results)}\n\n{END}{after}"


def publish(results: Results, page: Path = PAGE, plot: Path = PLOT, kept: Path = KEPT) -> None:
    """Keep the results, write the page again, draw the plot again."""
    results.write(kept)
    page.write_text(rendered(page.read_text(), Results.read(kept)))
    plot.write_text(drawn(Results.read(kept)))
