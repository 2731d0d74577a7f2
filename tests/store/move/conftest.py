"""Databases to move: with a whole life behind them, lived once a run and copied for each test; and empty ones."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from detent.model.clock import TurnableClock
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.postgres import Cluster
from detent.testing.stores import is_sqlite, plain_connection, turnable_store
from tests.conftest import RUN, numbers
from tests.store.move.whole_life import live_wholly

SetClock = "UPDATE detent.test_clock SET at = %s"


@dataclass(frozen=True, slots=True)
class Lived:
    """Where a life was lived, the jobs by name, and when it ended."""

    place: str
    ids: dict[str, int]
    until: datetime


@dataclass(frozen=True, slots=True)
class Databases:
    """Makes databases of this test's own, and opens stores on them whose time is the end of that life."""

    with_life: Callable[[str], str]
    empty: Callable[[str], str]
    open: Callable[[str], Store]
    ids: dict[str, dict[str, int]]


def lived(url: str, place: str) -> Lived:
    with turnable_store(url) as (store, clock):
        return Lived(place, live_wholly(store, clock, url).ids, clock.now())


@pytest.fixture(scope="session")
def moved_life_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    path = tmp_path_factory.mktemp("whole_life") / "t.db"
    return lived(f"sqlite:///{path}", str(path))


@pytest.fixture(scope="session")
def moved_life_postgres(postgres_cluster: Cluster, postgres_template: str) -> Lived:
    name = f"detent_whole_life_{RUN}"
    return lived(postgres_cluster.create_database(name, template=postgres_template), name)


@pytest.fixture
def databases(
    moved_life_sqlite: Lived,
    moved_life_postgres: Lived,
    postgres_cluster: Cluster,
    postgres_template: str,
    tmp_path: Path,
) -> Iterator[Databases]:
    files = itertools.count(1)
    until = max(moved_life_sqlite.until, moved_life_postgres.until)

    with ExitStack() as at_the_end:

        def on_server(template: str) -> str:
            name = f"detent_test_{RUN}_{next(numbers)}"
            url = postgres_cluster.create_database(name, template=template)
            at_the_end.callback(postgres_cluster.drop_database, name)
            with closing(plain_connection(url)) as connection:
                connection.execute(SetClock, (until,))
                connection.commit()
            return url

        def with_life(kind: str) -> str:
            if kind == "postgres":
                return on_server(moved_life_postgres.place)
            return f"sqlite:///{shutil.copy(moved_life_sqlite.place, tmp_path / f'{next(files)}.db')}"

        def empty(kind: str) -> str:
            return on_server(postgres_template) if kind == "postgres" else f"sqlite:///{tmp_path}/{next(files)}.db"

        def opened(url: str) -> Store:
            store = open_store(url, clock=TurnableClock(until) if is_sqlite(url) else None)
            at_the_end.callback(store.close)
            return store

        ids = {"sqlite": moved_life_sqlite.ids, "postgres": moved_life_postgres.ids}
        yield Databases(with_life, empty, opened, ids)
