"""The figure P12: a slice is clean, and an upgrade that stops clients or takes its locks for too long is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from detent.testing.postgres import URL_VARIABLE, Cluster
from prove.figure import Budget, Tally
from prove.kills.scene import Kind
from prove.upgrades.next_release import NextRelease
from prove.upgrades.sweep import next_release, sweep
from tests.deadlines import scaled

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """Each kind of database in turn, on the server of this run."""
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres_cluster")
        monkeypatch.setenv(URL_VARIABLE, cluster.url)
        return "postgres"
    return "sqlite"


def swept(kind: Kind, release: NextRelease | None = None, *, k: int) -> Tally:
    """Return what comes of one kill, before statement `k`."""
    return sweep(Budget("commit", 1, scaled(120), 1), kind, most=1, release=release, points=[(k, False)])


def test_a_slice_is_clean(kind: Kind, whole: bool) -> None:
    """L8: old and new go on side by side while the upgrade dies and is ended; on PostgreSQL beside a reader whose
    transaction stays open."""
    if kind == "postgres" and not whole:
        pytest.skip("part of make faults, and of the figure P12")
    tally = swept(kind, k=20)
    assert tally.is_clean, tally.stories
    assert tally.injected.total() >= 1
    assert tally.covered["transition job: pending -> running (claim)"]


def test_a_migration_that_the_older_release_cannot_bear_is_found(tmp_path: Path) -> None:
    """It renames a column, though it says that both releases may run."""
    release = NextRelease(tmp_path / "next").with_number().with_column().with_index()
    file = release.source / "detent" / "store" / "sqlite" / "schema" / "0002_note.sql"
    file.write_text(f"{file.read_text()}ALTER TABLE detent_job RENAME COLUMN payload TO body;\n")
    tally = swept("sqlite", release, k=1)
    assert not tally.is_clean
    assert "payload" in "".join(tally.stories)


def test_a_migrator_that_waits_for_its_lock_without_a_limit_is_found(
    tmp_path: Path, postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """All clients would wait behind it for as long as a transaction stays open."""
    if not whole:
        pytest.skip("part of make faults")
    monkeypatch.setenv(URL_VARIABLE, postgres_cluster.url)
    release = next_release(tmp_path / "next")
    limit = "SET LOCAL lock_timeout = '{LOCK_MILLISECONDS_MAX}ms'"
    release.edit("store/postgres/upgrade.py", limit, "SET LOCAL lock_timeout = '60s'")
    tally = swept("postgres", release, k=1)
    assert "for a lock" in "".join(tally.stories)
