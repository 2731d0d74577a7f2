"""The figures P1 and P2: a slice of each is clean, a seed repeats its points, and a missing guard is found."""

from __future__ import annotations

import itertools
import random
from contextlib import closing, suppress
from functools import partial
from typing import Any

import psycopg
import pytest

from detent.errors import DatabaseUnreachable
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.testing.harness import Harness
from detent.testing.postgres import URL_VARIABLE, Cluster
from detent.testing.stores import plain_connection
from prove.figure import Budget, Tally
from prove.figures import FIGURES
from prove.kills.deed import Deed, look_at_effects
from prove.kills.jobs import KEYED
from prove.kills.scene import Kind
from prove.kills.sweep import DEEDS, FAULTS, Points, sweep
from prove.trap import cut_at
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


def budget(seed: int = 1) -> Budget:
    return Budget("commit", seed, scaled(120), 1)


def test_a_slice_is_clean(kind: Kind) -> None:
    """G1, G2: some deeds of each sort, with faults at single statements and at pairs."""
    deeds = {name: DEEDS[name] for name in ("work", "send under a key", "work on an ops run")}
    tally = sweep(budget(random.randrange(10**6)), kind, deeds, most=12)
    assert tally.is_clean, tally.stories
    assert tally.injected.total() >= 12
    assert set(tally.injected) & {f"{fault} of the next worker too" for fault in FAULTS[kind]}
    assert tally.covered["fault SIGKILL"]
    assert tally.covered["transition job: pending -> running (claim)"]


def test_every_deed_is_drawn_and_a_seed_repeats_its_points() -> None:
    def drawn(seed: int) -> list[str]:
        def count(name: str) -> int:
            return 10 * (1 + list(DEEDS).index(name))

        points = Points(random.Random(seed), DEEDS, FAULTS["postgres"], count, count)
        return [str(points.next()) for _ in range(500)]

    first = drawn(7)
    assert drawn(7) == first
    assert drawn(8) != first
    assert all(any(repr(name) in point for point in first) for name in DEEDS)
    assert sum("then" in point for point in first) in range(100, 250)


def test_an_effect_and_its_record_in_two_transactions_are_found(kind: Kind) -> None:
    """A process that dies between them makes the next one leave a second row. The story says where it died."""
    numbers = itertools.count(1)

    def act(harness: Harness, root: int) -> None:
        with suppress(psycopg.OperationalError), closing(plain_connection(harness.url)) as connection:
            if not connection.execute(f"SELECT 1 FROM canonical WHERE id = '{root}'").fetchone():
                connection.execute(f"INSERT INTO ledger (root, job_id) VALUES ({root}, 1)")
                connection.commit()
                harness.store.ids_reserve(1)
                connection.execute(f"INSERT INTO canonical (id, times) VALUES ('{root}', 1)")
                connection.commit()

    found = until_found(kind, Deed(lambda _: next(numbers), act, partial(look_at_effects, effects=1), act))
    assert found.doubled
    assert "'deed': " in found.stories[0]
    assert "job 1 has left 2 rows" in found.stories[0]


def test_writes_that_are_not_one_transaction_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies between a job and its key has made a job that the next one makes again."""
    plain = SqliteExecutor.change_many

    def change_apart(self: SqliteExecutor, sql: str, params: Any) -> int:
        for word in ("COMMIT", "BEGIN IMMEDIATE"):
            self._cursor.execute(word)
        return plain(self, sql, params)

    monkeypatch.setattr(SqliteExecutor, "change_many", change_apart)
    found = until_found("sqlite", KEYED["send under a key"])
    assert not found.is_clean


def until_found(kind: Kind, deed: Any) -> Tally:
    found = Tally()
    for seed in range(10):
        found.add(sweep(budget(seed), kind, {"deed": deed}, most=10))
        if not found.is_clean:
            break
    return found


def test_a_cut_that_is_not_told_as_one_is_found(postgres_store_url: str) -> None:
    """A process whose connection was cut may say so, and nothing else."""

    def confused(harness: Harness) -> None:
        with suppress(DatabaseUnreachable):
            harness.store.job_get([1])
        raise ValueError("no idea")

    with closing(Harness(postgres_store_url)) as harness, pytest.raises(AssertionError, match="no idea"):
        cut_at(1, lambda: confused(harness), after=False)


def test_the_figures_are_listed() -> None:
    listed = {figure.id: figure.module for figure in FIGURES}
    assert (listed["P1"], listed["P2"]) == ("kills_sqlite", "kills_postgres")
