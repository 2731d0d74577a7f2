"""C7 with a real SIGKILL between the commit in the other database and the mark in Detent's."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from detent.testing.postgres import Cluster
from tests.processes.conftest import bench_on
from tests.processes.elsewhere import make_app
from tests.processes.worker_processes import Bench

PLACES = ["sqlite and postgres", "postgres and sqlite", "postgres and postgres", "sqlite and sqlite"]
SLICE = PLACES[:2]
"""In `make test`: each kind of database once as Detent's and once as the user's."""


class Ledger:
    """The user's own database."""

    def __init__(self, url: str) -> None:
        self.url = url
        with closing(self.connect()) as connection:
            connection.execute("CREATE TABLE ledger (line text NOT NULL)")
            connection.commit()

    def connect(self) -> Any:
        if self.url.startswith("sqlite:///"):
            return sqlite3.connect(self.url.removeprefix("sqlite:///"))
        return psycopg.connect(self.url)

    def lines(self) -> list[str]:
        with closing(self.connect()) as connection:
            return [row[0] for row in connection.execute("SELECT line FROM ledger").fetchall()]


@pytest.fixture(params=PLACES)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, postgres_cluster: Cluster, whole: bool
) -> Iterator[tuple[Bench, Ledger]]:
    """Detent's database, and the user's, which is another."""
    if not whole and request.param not in SLICE:
        pytest.skip("part of make faults")
    ours, _, theirs = request.param.partition(" and ")
    name = f"detent_data_{secrets.token_hex(4)}"
    url = f"sqlite:///{tmp_path}/data.db" if theirs == "sqlite" else postgres_cluster.create_database(name)
    with bench_on(ours, tmp_path, request) as bench:
        bench.app.close()
        bench.app = make_app(bench.url)
        yield bench, Ledger(url)
        bench.app.close()
    if theirs == "postgres":
        postgres_cluster.drop_database(name)


def test_killed_between_the_commit_there_and_the_mark_here(place: tuple[Bench, Ledger]) -> None:
    """C7, C3: one line, and one job that follows from it."""
    bench, ledger = place
    with closing(ledger.connect()) as connection:
        bench.app.prepare_foreign(connection)
    jobs = [bench.send("book", data=ledger.url, line=f"line {n}") for n in range(3)]
    bench.drain(app="tests.processes.elsewhere:app", slots=1)
    assert sorted(ledger.lines()) == ["line 0", "line 1", "line 2"]
    for job in jobs:
        bench.rests(job, "succeeded")
        assert bench.outcomes(job) == ["crashed", "done"]
        (line,) = [message for _, message in bench.lines(job)]
        assert line == "attempt 1 has committed in the other database: nothing is left to do"
    followed = bench.app.jobs.list(task="follow")
    assert sorted(job.result for job in followed) == ["line 0", "line 1", "line 2"]
    assert bench.is_healthy()


def test_without_the_boundary_it_happens_twice(place: tuple[Bench, Ledger]) -> None:
    """C7: the same death, and the effect is doubled; so the test above sees something."""
    bench, ledger = place
    job = bench.send("book_unmarked", data=ledger.url, line="one")
    bench.drain(app="tests.processes.elsewhere:app", slots=1)
    bench.rests(job, "succeeded")
    assert ledger.lines() == ["one", "one"]
