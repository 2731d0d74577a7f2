from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from detent.testing.postgres import Cluster
from detent.testing.stores import turnable_store
from tests.twin.machine import Side
from tests.twin.sides import OpenSides, side_on


@pytest.fixture
def open_sides(postgres_cluster: Cluster, postgres_url: str, tmp_path: Path) -> OpenSides:
    """Opens an empty database of each kind: PostgreSQL's as a copy of one that is ready, since that is quicker."""
    with turnable_store(postgres_url):
        pass
    template = postgres_url.rpartition("/")[2]
    numbers = itertools.count(1)

    @contextmanager
    def opened() -> Iterator[list[Side]]:
        name = f"{template}_{next(numbers)}"
        sqlite = f"sqlite:///{tmp_path}/{name}.db"
        postgres = postgres_cluster.create_database(name, template=template)
        try:
            with side_on("SQLite", sqlite) as left, side_on("PostgreSQL", postgres) as right:
                yield [left, right]
        finally:
            postgres_cluster.drop_database(name)

    return opened
