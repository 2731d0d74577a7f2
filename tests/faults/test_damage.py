"""Planted damage with workers running: it is named, it harms nothing else, and `repair` is idempotent."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from detent.testing.postgres import Cluster
from tests.conftest import RUN
from tests.faults.damage import Past, endure, live_until_now, of_page
from tests.faults.ledger import Ring
from tests.store.invariants.cases import CASES, Corruption
from tests.store.invariants.pages import PAGES_BESIDE_JOBS

KINDS_MIN = 80
KINDS = [
    *{case.name: case for case in CASES if case.name != "nobody_at_work"}.values(),
    *map(of_page, PAGES_BESIDE_JOBS),
]
"""Each once. That nobody is at work cannot be while a worker runs."""
SLICE = {
    "schedule_that_catches_up_in_a_strange_way",
    "limit_with_a_rate_below_nothing",
    "finished_long_ago",
    "place_in_the_queue_of_nobody",
    "numbers_of_jobs_begin_again",
    "operation_that_does_what_nobody_knows",
}


@pytest.fixture(scope="session")
def past_sqlite(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Past:
    path = tmp_path_factory.mktemp("past") / "t.db"
    shutil.copy(sqlite_template, path)
    return live_until_now(f"sqlite:///{path}", str(path))


@pytest.fixture(scope="session")
def past_postgres(postgres_cluster: Cluster, ready_template: str) -> Past:
    name = f"detent_past_{RUN}"
    return live_until_now(postgres_cluster.create_database(name, template=ready_template), name)


@contextmanager
def ring_with_past(kind: str, directory: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Ring, Past]]:
    """A copy of the database with a history."""
    past: Past = request.getfixturevalue(f"past_{kind}")
    if kind == "sqlite":
        shutil.copy(past.place, directory / "ring.db")
        with Ring(f"sqlite:///{directory}/ring.db", directory) as ring:
            yield ring, past
        return
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    name = f"detent_ring_{secrets.token_hex(4)}"
    try:
        with Ring(cluster.create_database(name, template=past.place), directory) as ring:
            yield ring, past
    finally:
        cluster.drop_database(name)


def _portions(whole: bool) -> list[Any]:
    """Each kind in a database of its own, or a few together in one."""
    portions = {
        kind: [[case] for case in KINDS if case.only in (None, kind)]
        if whole
        else [[case for case in KINDS if case.name in SLICE]]
        for kind in ("sqlite", "postgres")
    }
    return [
        pytest.param(kind, cases, id=f"{kind}-{cases[0].name}") for kind, found in portions.items() for cases in found
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kinds" in metafunc.fixturenames:
        metafunc.parametrize(("kind", "kinds"), _portions(metafunc.config.getoption("--whole")))


@pytest.mark.timeout(300)
def test_damage_harms_nothing_else(
    kind: str, kinds: Sequence[Corruption], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """R3, G1, G6, C1: unrelated jobs run, each with one effect; at most two lines a second are logged; `verify` names
    the damage; a second `repair` has nothing to do, and neither has changed a record."""
    with ring_with_past(kind, tmp_path, request) as (ring, past):
        endure(ring, past, kinds)


def test_there_are_many_kinds_of_damage() -> None:
    """R3"""
    for kind in ("sqlite", "postgres"):
        assert len({case.name for case in KINDS if case.only in (None, kind)}) >= KINDS_MIN
    assert {case.name for case in KINDS} > SLICE
