"""A healthy database after a mixed life, lived once a run and copied for each test; and an owner about to spoil it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from detent.store.contract import Store
from detent.testing.postgres import Cluster
from detent.testing.stores import StoreClock, turnable_store
from tests.conftest import RUN, numbers
from tests.store.invariants.life import Life, live
from tests.store.invariants.owner import Owner


@dataclass(frozen=True, slots=True)
class Lived:
    """Where a life was lived, the jobs by name, and when it ended."""

    place: str
    ids: dict[str, int]
    until: datetime


def lived(url: str, place: str) -> Lived:
    with turnable_store(url) as (store, clock):
        return Lived(place, live(store, clock).ids, clock.now())


@pytest.fixture(scope="session")
def lived_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    path = tmp_path_factory.mktemp("lived") / "t.db"
    return lived(f"sqlite:///{path}", str(path))


@pytest.fixture(scope="session")
def lived_postgres(postgres_cluster: Cluster, postgres_template: str) -> Lived:
    name = f"detent_lived_{RUN}"
    return lived(postgres_cluster.create_database(name, template=postgres_template), name)


@pytest.fixture
def sqlite_copy(lived_sqlite: Lived, tmp_path: Path) -> str:
    shutil.copy(lived_sqlite.place, tmp_path / "t.db")
    return f"sqlite:///{tmp_path}/t.db"


@pytest.fixture
def postgres_copy(lived_postgres: Lived, postgres_cluster: Cluster) -> Iterator[str]:
    name = f"detent_test_{RUN}_{next(numbers)}"
    yield postgres_cluster.create_database(name, template=lived_postgres.place)
    postgres_cluster.drop_database(name)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each database in turn."""
    return str(request.param)


@pytest.fixture
def store_url(request: pytest.FixtureRequest, kind: str) -> str:
    """A database with a life behind it."""
    url: str = request.getfixturevalue(f"{kind}_copy")
    return url


@pytest.fixture
def life(request: pytest.FixtureRequest, kind: str, store: Store, clock: StoreClock) -> Life:
    """Every kind of job, by name."""
    past: Lived = request.getfixturevalue(f"lived_{kind}")
    clock.set(past.until)
    return Life(store, clock, past.ids)


@pytest.fixture
def owner(store: Store, store_url: str) -> Iterator[Owner]:
    """A raw connection to the database of `store`."""
    with closing(Owner(store_url)) as someone:
        yield someone
