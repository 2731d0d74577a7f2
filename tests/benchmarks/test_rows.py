"""The table of the benchmarks says what the samples say, and says when there are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.contest.contender import CONTENDERS, Contender
from benchmarks.contest.programme import WORKS
from benchmarks.contest.quantities import Quantity, Row
from benchmarks.contest.results import Results, Sample
from benchmarks.contest.rows import ROWS
from benchmarks.plot import drawn

FAST = Row("drain", "SQLite", Quantity("drain"), 2.0, Quantity("drain", contender="floor"))
SMALL = Row("memory", "SQLite", Quantity("memory", "child_mb"), 45.0, at_most=True, unit=" MB")


def results(*samples: tuple[int, str, str, float]) -> Results:
    return Results(
        {"at": "now"},
        samples=[Sample(number, "SQLite", work, name, {_value(work): value}) for number, work, name, value in samples],
    )


def _value(work: str) -> str:
    return "child_mb" if work == "memory" else "per_second"


def test_a_ratio_is_of_one_round_and_the_median_decides() -> None:
    found = results(
        (1, "drain", "Detent", 100.0),
        (1, "drain", "floor", 10.0),
        (2, "drain", "Detent", 10.0),
        (2, "drain", "floor", 10.0),
        (3, "drain", "Detent", 30.0),
        (3, "drain", "floor", 10.0),
        (4, "drain", "Detent", 999.0),
    )
    assert list(FAST.reached(found)) == [10.0, 1.0, 3.0]
    assert FAST.is_met(found)
    assert FAST.cells(found)[2:] == ("≥ 2 × floor", "3.00 [1.00..10.00]", "65/s", "floor 10", "met")


def test_a_limit_is_met_from_below() -> None:
    assert SMALL.is_met(results((1, "memory", "Detent", 44.0)))
    assert SMALL.is_met(results((1, "memory", "Detent", 46.0))) is False
    assert SMALL.cells(results((1, "memory", "Detent", 46.0)))[-1] == "**missed**"


def test_who_did_not_take_part_is_not_run() -> None:
    alone = results((1, "drain", "Detent", 100.0))
    assert FAST.is_met(alone) is None
    assert FAST.cells(alone)[3] == "not run"


def test_what_only_stands_beside_is_neither_met_nor_missed() -> None:
    both = results((1, "drain", "Detent", 100.0), (1, "drain", "floor", 10.0))
    beside = replace(FAST, wanted=None)
    assert beside.is_met(both) is None
    assert beside.cells(both)[2:] == ("beside × floor", "10.00 [10.00..10.00]", "100/s", "floor 10", "")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.what}, {row.database}, {row.wanted}")
def test_every_row_asks_for_a_work_that_both_sides_do(row: Row) -> None:
    taking_part = {(one.name, work) for one in CONTENDERS if one.database == row.database for work in one.works}
    for quantity in (row.ours, row.against or row.ours):
        assert quantity.work in WORKS
        assert (quantity.contender, quantity.work) in taking_part


def test_a_contender_that_is_not_installed_says_so() -> None:
    absent = Contender("absent", "SQLite", ("/nowhere/bin/python", "-m", "absent"), frozenset())
    assert absent.missing() == "not installed; `make peers` does it"


def test_results_come_back_as_they_were_kept(tmp_path: Path) -> None:
    kept = results((1, "drain", "Detent", 12345.678), (1, "memory", "Detent", 46.0))
    kept.write(tmp_path / "kept.json")
    found = Results.read(tmp_path / "kept.json")
    assert [sample.values for sample in found.samples] == [{"per_second": 12350.0}, {"child_mb": 46.0}]
    assert (found.made, found.missing) == (kept.made, kept.missing)


def test_the_plot_has_a_bar_for_everybody_and_no_markup_of_theirs() -> None:
    plot = drawn(results((1, "drain", "Detent", 100.0), (1, "drain", "<b>", 50.0)))
    assert plot.count("<rect") == 2
    assert "&lt;b&gt;" in plot
    assert "<b>" not in plot
