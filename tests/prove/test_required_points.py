"""What a long run must reach: all that the code declares, but for points that are exempt for a reason."""

from __future__ import annotations

from collections import Counter

from detent.errors import LeaseLost
from detent.lifecycle.library import LIBRARY
from prove.coverage import fault_points, transition_point
from prove.figure import Tally
from prove.required_points import DECLARED, EXEMPT, FAULTS, REQUIRED, TIMES, missing_points, summary
from prove.simulation.exploration import explored
from prove.table import findings
from tests.prove.test_frame import results

ENOUGH = Counter(dict.fromkeys(REQUIRED, 100))


def test_every_declared_point_is_required_or_exempt_for_a_reason() -> None:
    moves = {transition_point(lifecycle, move) for lifecycle in LIBRARY.values() for move in lifecycle.transitions}
    assert moves <= DECLARED
    assert {f"error {LeaseLost.__name__}", "fault SIGKILL", "sqlstate class 57"} <= DECLARED
    assert EXEMPT.keys() <= DECLARED, EXEMPT.keys() - DECLARED
    assert REQUIRED | EXEMPT.keys() == DECLARED
    assert all(len(reason) > 30 for reason in EXEMPT.values())
    assert {"error LeaseLost", "transition execution: in_progress -> committed (commit)"} <= REQUIRED


def test_a_point_that_was_not_reached_often_enough_is_not_clean() -> None:
    """In a long run; a commit only reports."""
    assert missing_points(ENOUGH, "nightly") == {}
    short = Counter(ENOUGH)
    short["error LeaseLost"] = TIMES["nightly"] - 1
    assert missing_points(short, "nightly") == missing_points(short, "release") == {"error LeaseLost": 99}
    assert missing_points(Counter(), "commit") == {}
    found = results(Tally(injected=Counter(kill=1)))
    found.missing = missing_points(short, "nightly")
    assert not found.is_clean
    assert "not covered: error LeaseLost (reached 99 times)" in list(findings(found))


def test_the_summary_says_what_was_reached() -> None:
    said = summary(Counter({"error LeaseLost": 2, "sqlite SQLITE_FULL": 1}), "commit")
    assert f"1 of {len(REQUIRED)} required points were reached at least once" in said
    assert f"and 1 others. {len(EXEMPT)} points are exempt" in said
    assert f"{len(REQUIRED)} of {len(REQUIRED)} required points were reached at least 100 times" in summary(
        ENOUGH, "nightly"
    )


def test_a_sqlstate_counts_for_its_class() -> None:
    found = Counter(ENOUGH)
    del found["sqlstate class 57"]
    assert missing_points(found, "nightly") == {"sqlstate class 57": 0}
    found["sqlstate 57P01"] = 100
    assert missing_points(found, "nightly") == {}


def test_the_faults_of_the_simulation_are_on_the_list() -> None:
    """A fault that is new must be reached, too."""
    (group,) = explored(7, 12, 1)
    reached = {point for point in group.covered if point.startswith("fault ")}
    assert len(reached) > 8
    assert reached <= fault_points(*FAULTS).keys()
