"""The figure P10: a slice is clean on both databases, and a fence that is gone is found."""

from __future__ import annotations

import random

import pytest

from detent.testing.postgres import URL_VARIABLE, Cluster
from prove.defects import DEFECTS
from prove.defects.trial import try_defect
from prove.figure import Budget
from prove.figures import FIGURES
from prove.figures.zombies import ring_on
from prove.kills.scene import Kind
from prove.zombies.pair import FAULT, zombies
from tests.deadlines import scaled

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """Each kind of database in turn, on the server of this run."""
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres_cluster")
        monkeypatch.setenv(URL_VARIABLE, cluster.url)
        return "postgres"
    return "sqlite"


def test_a_slice_is_clean(kind: Kind) -> None:
    """G2, G3: a worker stands still in its function and before it ends a job, and another one takes over."""
    moments = ("started", "before job_finish")
    with ring_on(kind) as ring:
        budget = Budget("commit", 1, scaled(120), 1)
        tally = zombies(budget, ring, seed=random.randrange(10**6), most=2, moments=moments)
    assert tally.is_clean, tally.stories
    assert tally.injected == {FAULT: 2}
    assert {f"zombie {moment}" for moment in moments} <= tally.covered.keys()
    assert tally.covered["zombie taken over"]


def test_a_fence_that_is_gone_is_found(postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker that stood still ends the attempt of the other one, in the middle of it."""
    monkeypatch.setenv(URL_VARIABLE, postgres_cluster.url)
    trial = try_defect(DEFECTS["no fence, PostgreSQL"], seed=1)
    assert trial.verdict == "found", trial
    assert "instead of attempt" in trial.said


def test_the_figure_is_listed() -> None:
    assert {figure.id: figure.module for figure in FIGURES}["P10"] == "zombies"
