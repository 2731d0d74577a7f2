"""Real workers on real databases, by the clock on the wall."""

from __future__ import annotations

import secrets
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from detent.testing.postgres import Cluster
from tests.deadlines import scaled
from tests.processes.worker_processes import Bench

KINDS = ("sqlite", "postgres")


@contextmanager
def bench_on(kind: str, directory: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    if kind == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), directory / "bench.db")
        with Bench(f"sqlite:///{directory}/bench.db", directory) as one:
            yield one
        return
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    name = f"detent_bench_{secrets.token_hex(4)}"
    url = cluster.create_database(name, template=request.getfixturevalue("ready_template"))
    try:
        with Bench(url, directory) as one:
            yield one
    finally:
        cluster.drop_database(name)


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A place to run workers, on each kind of database in turn."""
    with bench_on(request.param, tmp_path, request) as one:
        yield one


@pytest.fixture
def sqlite_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """One on SQLite alone, for what is between processes and does not touch the database."""
    with bench_on("sqlite", tmp_path, request) as one:
        yield one


@pytest.fixture
def postgres_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """One on PostgreSQL alone, for what one writer at a time would make another story."""
    with bench_on("postgres", tmp_path, request) as one:
        yield one


@pytest.fixture(scope="module", params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One whose worker has begun: many tests send jobs to it, and it must survive them all."""
    with bench_on(request.param, tmp_path_factory.mktemp("shop"), request) as one:
        # Whoever listens ends within the grace on a slow machine too, and its process is kept.
        calm = {"lease": scaled(3.0), "cancel_grace": scaled(5.0)}
        worker = one.worker(slots=8, queues=("default", "capped"), queue_slots={"capped": 2}, **calm)
        yield one
        assert worker.process.poll() is None, worker.log
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0, worker.log
        assert one.is_healthy()
