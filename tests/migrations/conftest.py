"""A second empty database of the kind the test is on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from detent.testing.postgres import Cluster
from detent.testing.stores import is_sqlite


@pytest.fixture
def another_url(database_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """To compare with: a database that nobody has touched."""
    if is_sqlite(database_url):
        yield f"sqlite:///{tmp_path}/another.db"
        return
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    name = database_url.rpartition("/")[2] + "_b"
    yield cluster.create_database(name)
    cluster.drop_database(name)
