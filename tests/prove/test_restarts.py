"""The figure P4: a slice is clean, with a restart and a fail-over, and it notes how soon there was work again."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from detent.testing.postgres import find_binaries
from detent.testing.stores import plain_connection
from prove.figure import Budget
from prove.figures import FIGURES, restarts
from tests.deadlines import scaled
from tests.faults.ledger import Ring

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def binaries() -> Path:
    """A server that this test may stop."""
    found = find_binaries()
    if not found:
        pytest.skip("no binaries of PostgreSQL: a server that this run did not start is not stopped")
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


def test_what_is_lost_or_doubled_is_found(binaries: Path, budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    """An effect that is taken away, and one that is made twice, behind the back of Detent."""
    plain: Callable[[Ring], object] = Ring.ledger

    def spoilt(ring: Ring) -> object:
        with closing(plain_connection(ring.url)) as connection:
            connection.execute("DELETE FROM ledger WHERE job_id = (SELECT min(job_id) FROM ledger)")
            connection.execute("INSERT INTO ledger SELECT * FROM ledger ORDER BY job_id LIMIT 1")
            connection.commit()
        return plain(ring)

    monkeypatch.setattr(Ring, "ledger", spoilt)
    tally = restarts.restarts(budget, binaries, most=1)
    assert (tally.lost, tally.doubled, tally.stuck, tally.wrong) == (1, 1, 0, 0), tally.stories


def test_the_figure_is_listed() -> None:
    assert {figure.id: figure.module for figure in FIGURES}["P4"] == "restarts"
