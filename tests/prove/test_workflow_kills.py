"""The figure P15: a slice is clean on both databases, each point is drawn once, and a missing record is found."""

from __future__ import annotations

import random

import pytest

from detent.store.sqlite.commit_block import HoldersBlock
from detent.testing.postgres import URL_VARIABLE, Cluster
from prove.figure import Budget
from prove.kills.scene import Kind
from prove.kills.sweep import Points
from prove.workflows.sweep import sweep
from tests.deadlines import scaled

pytestmark = pytest.mark.timeout(300)
NAMES = ("transactions", "signals before, during and after")


def budget(seed: int = 1) -> Budget:
    return Budget("commit", seed, scaled(120), 1)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_slice_is_clean(kind: Kind, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """F1, F3, F5: kills before and after statements, and of the next worker."""
    if kind == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres_cluster")
        monkeypatch.setenv(URL_VARIABLE, cluster.url)
    tally = sweep(budget(random.randrange(10**6)), kind, NAMES, most=8)
    assert tally.is_clean, tally.stories
    assert tally.covered["fault SIGKILL"]
    assert set(tally.injected) <= {
        "SIGKILL before a statement",
        "SIGKILL after a statement",
        "SIGKILL of the next worker too",
    }


def test_without_pairs_each_point_is_drawn_once() -> None:
    points = Points(random.Random(3), NAMES, ("SIGKILL",), lambda _: 5, lambda _: 5, sides=(False,), pairs=False)
    drawn = []
    while (point := points.next()) is not None:
        drawn.append((point.deed, point.k))
        assert not point.after
    assert sorted(drawn) == [(name, k) for name in sorted(NAMES) for k in range(1, 6)]
    assert str(points) == "10 of 10 points of 2 deeds"


def test_a_transaction_without_its_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HoldersBlock, "leave", lambda _self, _executor: True)
    found = sweep(budget(), "sqlite", ("transactions",), most=4, findings_max=1)
    assert not found.is_clean
    assert "'transactions': SIGKILL " in found.stories[0]
