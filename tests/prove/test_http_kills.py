"""P16: a slice is clean, and a job too many, a lost one and a line too few are found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from detent.testing.harness import Harness
from detent.testing.postgres import URL_VARIABLE, Cluster
from prove.figure import Budget, Tally
from prove.figures.http_kills import check_jobs, compare, run
from prove.http_kills.clients import Sender
from tests.deadlines import scaled

pytestmark = pytest.mark.timeout(300)


def test_a_slice_is_clean(postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """G1: two servers on each database are killed."""
    monkeypatch.setenv(URL_VARIABLE, postgres_cluster.url)
    tally = run(Budget("commit", 1, scaled(8), 1), most=4)
    assert tally.is_clean, tally.stories
    assert tally.injected["SIGKILL of the server, SQLite"] + tally.injected["SIGKILL of the server, PostgreSQL"] >= 2
    assert tally.covered["fault SIGKILL"]


@pytest.fixture
def harness(sqlite_store_url: str) -> Iterator[Harness]:
    with closing(Harness(sqlite_store_url)) as made:
        yield made


def test_a_key_with_two_jobs_and_a_job_that_is_gone_are_found(harness: Harness) -> None:
    app = harness.app

    @app.task(name="add")
    def add(ctx: object, a: int, b: int) -> int:
        return a + b

    jobs = [str(add.enqueue(a=0, b=1).id) for _ in range(2)]
    sender = Sender("http://localhost", 0, 1)
    sender.payloads = {"0-1": {"a": 0, "b": 1}}

    def found(*ids: str) -> Tally:
        sender.jobs = {"0-1": set(ids)}
        tally = Tally()
        check_jobs(app.store, [sender], "here", tally)
        return tally

    assert found(*jobs).doubled == 2
    assert found(jobs[0]).stories == ["here: there are 2 jobs, and 1 keys"]
    assert found(jobs[0], "4711").lost == 1
    sender.payloads = {"0-1": {"a": 7, "b": 1}}
    assert found(jobs[0]).wrong == 1


def test_lines_too_few_and_too_many_are_found() -> None:
    tally = Tally()
    compare(["a", "c", "c"], ["a", "b", "c"], "here", tally)
    assert (tally.lost, tally.doubled) == (1, 1)
    clean = Tally()
    compare(["b", "a"], ["a", "b"], "here", clean)
    assert clean.is_clean
