"""Planted damage with workers running: it is named, it harms nothing else, and `repair` is idempotent."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from detent.testing.postgres import Cluster
from tests.conftest import RUN
from tests.faults.damage import Past, endure, live_until_now
from tests.faults.kit import Ring
from tests.invariants.cases import CASES, Corruption


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


GROUP = 1


def groups() -> Iterator[object]:
    for kind in ("sqlite", "postgres"):
        cases = [case for case in CASES if case.only in (None, kind) and case.name != "nobody_at_work"]
        for start in range(0, len(cases), GROUP):
            yield pytest.param(kind, cases[start : start + GROUP], id=f"{kind}-{cases[start].name}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "kinds"), list(groups()))
def test_damage_harms_nothing_else(
    kind: str, kinds: Sequence[Corruption], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with ring_with_past(kind, tmp_path, request) as (ring, past):
        endure(ring, past, kinds)
