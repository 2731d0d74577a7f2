"""What every test may ask for: a throw-away database of either kind.

One PostgreSQL server serves the whole run. Under xdist the controlling process owns it and tells the workers its url,
so it outlives each of them; without xdist the session's fixture owns it, and a run that needs none starts none.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from detent.testing.postgres import Cluster, start_cluster

shared_cluster = pytest.StashKey[Cluster]()
RUN = secrets.token_hex(4)
numbers = itertools.count(1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In xdist's controlling process, before a worker starts."""
    if shared_cluster not in node.config.stash:
        node.config.stash[shared_cluster] = start_cluster()
    node.workerinput["postgres_url"] = node.config.stash[shared_cluster].url


def pytest_unconfigure(config: pytest.Config) -> None:
    if shared_cluster in config.stash:
        config.stash[shared_cluster].stop()


@pytest.fixture(scope="session")
def postgres_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The run's PostgreSQL server. Databases made through it are dropped at the end."""
    workerinput = getattr(request.config, "workerinput", None)
    with Cluster(workerinput["postgres_url"]) if workerinput else start_cluster() as cluster:
        yield cluster


@pytest.fixture
def postgres_url(postgres_cluster: Cluster) -> Iterator[str]:
    """An empty PostgreSQL database of this test's own."""
    name = f"detent_test_{RUN}_{next(numbers)}"
    yield postgres_cluster.create_database(name)
    postgres_cluster.drop_database(name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The path of this test's own SQLite file, not made yet."""
    return f"sqlite:///{tmp_path}/t.db"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind in turn."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url
