"""Faults on real parts. `make test` runs a slice of each, `make faults` (`--whole`) the whole."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from detent.testing.postgres import Cluster
from tests.faults.ledger import Ring


@contextmanager
def ring_on(kind: str, directory: Path, request: pytest.FixtureRequest) -> Iterator[Ring]:
    if kind == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), directory / "ring.db")
        with Ring(f"sqlite:///{directory}/ring.db", directory) as one:
            yield one
        return
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    name = f"detent_ring_{secrets.token_hex(4)}"
    try:
        with Ring(cluster.create_database(name, template=request.getfixturevalue("ready_template")), directory) as one:
            yield one
    finally:
        cluster.drop_database(name)


@pytest.fixture(params=["sqlite", "postgres"])
def ring(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ring]:
    """A place for faults, on each kind of database in turn."""
    with ring_on(request.param, tmp_path, request) as one:
        yield one


@pytest.fixture
def postgres_ring(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ring]:
    """One on PostgreSQL."""
    with ring_on("postgres", tmp_path, request) as one:
        yield one


@pytest.fixture
def sqlite_ring(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ring]:
    """One on SQLite."""
    with ring_on("sqlite", tmp_path, request) as one:
        yield one
