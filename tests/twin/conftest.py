from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from detent.testing.postgres import Cluster
from tests.twin.machine import Side
from tests.twin.sides import OpenSides, side_on


@pytest.fixture
def open_sides(postgres_cluster: Cluster, postgres_template: str, sqlite_template: Path, tmp_path: Path) -> OpenSides:
    """Opens an empty database of each kind, as a copy of one that is ready: a life is short, and migrating is not."""
    numbers = itertools.count(1)

    @contextmanager
    def opened() -> Iterator[list[Side]]:
        name = postgres_cluster.new_name("detent_twin")
        path = shutil.copy(sqlite_template, tmp_path / f"{next(numbers)}.db")
        sqlite = f"sqlite:///{path}"
        postgres = postgres_cluster.create_database(name, template=postgres_template)
        try:
            with side_on("SQLite", sqlite) as left, side_on("PostgreSQL", postgres) as right:
                yield [left, right]
        finally:
            postgres_cluster.drop_database(name)

    return opened
