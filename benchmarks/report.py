"""The report: the tables of docs/performance.md and its plot, out of results that were kept beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.contest.contender import ROOT
from benchmarks.contest.quantities import Row
from benchmarks.contest.results import Results
from benchmarks.contest.rows import ROWS
from benchmarks.measure import table
from benchmarks.plot import drawn

__all__ = ["HEAD", "KEPT", "PAGE", "PLOT", "publish", "rendered", "verdict"]

HEAD = ("work", "database", "target", "reached", "Detent", "beside it", "")
PAGE, PLOT, KEPT = ROOT / "docs/performance.md", ROOT / "docs/performance.svg", ROOT / "docs/performance.json"
ROUNDS_MIN = 3
"""With fewer a median and its spread say little."""
BEGIN, END = "<!-- made from performance.json by `python -m benchmarks report` -->", "<!-- up to here -->"


def verdict(results: Results, rows: Sequence[Row] = ROWS) -> str:
    """Row by row what was to be reached, and how many rows are."""
    met = [row.is_met(results) for row in rows if row.wanted is not None]
    count = f"{met.count(True)} of {len(met)} rows met, {met.count(False)} missed, {met.count(None)} not run."
    return f"{table(HEAD, [row.cells(results) for row in rows])}\n\n{count}"


def rendered(page: str, results: Results) -> str:
    """The page with its made part made anew. Raises ValueError where it has none."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{circumstances(results)}\n\n{verdict(results)}\n\n{END}{after}"


def circumstances(results: Results) -> str:
    """When, where and how much, as far as the run wrote it down; and whether it is enough to judge by."""
    made, size = results.made, results.size
    said = [
        f"Measured on {made['at']}, {made['cores']} cores shared by database, workers and callers; "
        f"Python {made['python']}, SQLite {made['sqlite']}, PostgreSQL {made['postgresql']}.",
        f"Rounds: {size['rounds']}; {size['drained']:,} jobs a drain, "
        f"{size['passed']:,} before a drain under a held snapshot.",
    ]
    if "load" in made:
        said.append(f"The machine's load average was {made['load']} when it began.")
    said += [
        f"Beside millions of jobs ({one.database}): {one.values['finished']:,.0f} finished, "
        f"{one.values['pending']:,.0f} pending."
        for one in results.samples
        if one.work == "filled" and one.round == 1
    ]
    if size["rounds"] < ROUNDS_MIN:
        said.append(f"**Fewer than {ROUNDS_MIN} rounds: a first impression, not a verdict.**")
    said += [f"{name}: {why}." for name, why in results.missing.items()]
    return "\n".join(said)


def publish(results: Results, page: Path = PAGE, plot: Path = PLOT, kept: Path = KEPT) -> None:
    """Keep the results, write the page again, draw the plot again."""
    results.write(kept)
    page.write_text(rendered(page.read_text(), Results.read(kept)))
    plot.write_text(drawn(Results.read(kept)))
