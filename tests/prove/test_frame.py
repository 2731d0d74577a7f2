"""The frame of `make prove`: the list of figures, the table, the file and the page."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prove.figure import Budget, Tally
from prove.figures import FIGURES, Figure, figures_named
from prove.report import BEGIN, END, PAGE, rendered
from prove.results import Result, Results
from prove.runner import _result, run_figure
from prove.table import findings, terminal_table

MADE = {
    "tier": "commit",
    "seed": 7,
    "at": "2026-11-19 00:00 UTC",
    "commit": "abc",
    "detent": "1",
    "python": "3",
    "sqlite": "3",
    "postgresql": "15",
    "cores": 2,
    "machine": "x86_64",
    "load": "0.1",
    "seconds": 200,
}


def results(tally: Tally) -> Results:
    """A run of one figure."""
    return Results(dict(MADE), [Result("P1", "kills", tally, 12.3)])


def test_every_figure_has_a_module_and_a_budget() -> None:
    for figure in FIGURES:
        assert importlib.util.find_spec(f"prove.figures.{figure.module}") is not None, figure
        assert 0 < figure.commit <= figure.nightly <= figure.release
    assert len({figure.id for figure in FIGURES}) == len({figure.module for figure in FIGURES}) == len(FIGURES)


def test_the_tier_of_a_commit_fits_into_four_minutes_of_two_cores() -> None:
    assert sum(figure.commit * figure.cores for figure in FIGURES) <= 2 * 240
    assert sum(figure.nightly * figure.cores for figure in FIGURES) <= 2 * 3600


def test_a_name_that_is_no_figure_is_refused() -> None:
    with pytest.raises(ValueError, match="There is no figure P99"):
        figures_named("P99")
    assert figures_named(",".join(figure.module for figure in FIGURES)) == FIGURES


@pytest.mark.parametrize("outcome", ["lost", "doubled", "stuck", "wrong"])
def test_one_finding_is_not_clean(outcome: str) -> None:
    tally = Tally(injected=Counter(kill=3), stories=["seed 3: a job is gone"])
    setattr(tally, outcome, 1)
    found = results(tally)
    assert not found.is_clean
    assert any("seed 3: a job is gone" in text for text in findings(found))
    assert results(Tally(injected=Counter(kill=3))).is_clean


def test_nothing_that_ran_is_not_clean() -> None:
    assert not Results(dict(MADE)).is_clean


def test_results_are_kept_in_a_file(tmp_path: Path) -> None:
    found = results(Tally(Counter(kill=3, cut=4), lost=1, covered=Counter(point=2), stories=["s"], notes=["n"]))
    found.write(tmp_path / "a" / "prove.json")
    again = Results.read(tmp_path / "a" / "prove.json")
    assert again == found
    assert again.results[0].count == 7


def test_the_table_says_what_was_injected() -> None:
    said = terminal_table(results(Tally(Counter({"SIGKILL before a statement": 1234}))))
    assert "SIGKILL before a statement: 1,234" in said
    assert said.splitlines()[1].split()[-6:] == ["1,234", "0", "0", "0", "0", "12"]


def test_the_page_is_written_between_its_markers() -> None:
    found = results(Tally(Counter({"SIGKILL": 3})))
    page = rendered(f"before\n{BEGIN}\nold\n{END}\nafter\n", found)
    assert page.startswith(f"before\n{BEGIN}\n")
    assert page.endswith(f"{END}\nafter\n")
    assert "old" not in page
    assert "| P1 | kills | SIGKILL: 3 | 0 | 0 | 0 | 0 | 12 |" in page
    assert "Tier commit, seed 7, 2026-11-19 00:00 UTC, 200 s." in page
    assert rendered(page, found) == page
    rendered(PAGE.read_text(), found)
    with pytest.raises(ValueError, match="must have the lines"):
        rendered("no markers", found)


def test_a_figure_that_breaks_down_is_wrong_and_one_that_never_ends_is_stuck(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("Traceback: oh")
    figure = Figure("P1", "kills", "kills_sqlite", 1, 1, 1)
    budget = Budget("commit", 1, 1.0)

    def ended(code: int) -> Tally:
        run: Any = SimpleNamespace(
            figure=figure, process=SimpleNamespace(returncode=code), to=tmp_path / "to", output=tmp_path / "log"
        )
        run.budget, run.seconds = budget, 1.0
        return _result(run).tally

    assert ended(1).wrong == 1
    assert "Traceback: oh" in ended(1).stories[0]
    assert ended(-signal.SIGKILL).stuck == 1
    empty: Any = SimpleNamespace(run=lambda _budget: Tally())
    run_figure(empty, budget, tmp_path / "to")
    assert ended(0).wrong == 1
    assert "injected nothing" in ended(0).stories[0]


def test_the_command_refuses_a_figure_that_it_does_not_know() -> None:
    command = [sys.executable, "-m", "prove", "run", "--only", "P99"]
    done = subprocess.run(command, cwd=PAGE.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "There is no figure P99" in done.stderr
