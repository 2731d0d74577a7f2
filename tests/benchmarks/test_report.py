"""The page on performance and its plot are made from the samples that stand beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.contest.results import Results
from benchmarks.plot import drawn
from benchmarks.report import KEPT, PAGE, PLOT, publish, rendered


def test_the_page_and_the_plot_are_what_the_samples_say() -> None:
    kept = Results.read(KEPT)
    assert PAGE.read_text() == rendered(PAGE.read_text(), kept), "make bench-report"
    assert PLOT.read_text() == drawn(kept), "make bench-report"


def test_a_report_changes_only_what_is_made(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(PAGE.read_text().replace("# Performance", "# Another title"))
    results = Results.read(KEPT)
    results.made["at"] = "the first of May"
    publish(results, page, tmp_path / "plot.svg", tmp_path / "kept.json")
    changed = {line for line in page.read_text().splitlines() if line not in PAGE.read_text().splitlines()}
    assert {line for line in changed if "the first of May" not in line} == {"# Another title"}
    assert len(changed) == 2


def test_a_page_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match="unpack"):
        rendered("# A page\n", Results.read(KEPT))
