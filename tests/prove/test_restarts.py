"""The figure P4: a slice is clean, with a restart and a fail-over, and it notes how soon there was work again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from detent.testing.postgres import find_binaries
from prove.figure import Budget, Tally
from prove.figures import FIGURES, restarts
from tests.deadlines import scaled
from tests.faults.ledger import Ring

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def binaries() -> Path:
    """A server that this test may stop."""
    found = find_binaries()
    if not found:
        pytest.skip("no binaries of PostgreSQL: a server that belongs to somebody else is not stopped")
    return found[0]


@pytest.fixture
def budget() -> Budget:
    return Budget("commit", random.randrange(10**6), scaled(120), 1)


def test_a_restart_is_clean(binaries: Path, budget: Budget) -> None:
    """R4, G1, J7: what was accepted is done once, by the same processes, and no attempt is used up."""
    tally = restarts.restarts(budget, binaries, most=1)
    assert tally.is_clean, tally.stories
    assert tally.injected == {restarts.RESTART: 1}
    assert "s (p99)" in tally.notes[0]


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        ("DELETE FROM ledger", "lost"),
        ("INSERT INTO ledger SELECT * FROM ledger LIMIT 1", "doubled"),
    ],
)
def test_what_is_lost_or_doubled_is_found(
    binaries: Path, budget: Budget, monkeypatch: pytest.MonkeyPatch, spoil: str, kind: str
) -> None:
    """An effect that is taken away, or made twice, behind the back of Detent."""
    plain: Callable[[Ring], object] = Ring.ledger

    def spoilt(ring: Ring) -> object:
        ring.ask(f"WITH spoilt AS ({spoil} RETURNING 1) SELECT * FROM spoilt")
        return plain(ring)

    monkeypatch.setattr(Ring, "ledger", spoilt)
    tally = restarts.restarts(budget, binaries, most=1)
    assert getattr(tally, kind)


def test_the_figure_is_listed() -> None:
    assert {figure.id: figure.module for figure in FIGURES}["P4"] == "restarts"
    assert Tally().is_clean
