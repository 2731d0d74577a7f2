"""This release on tables that a later one has widened: its functions, or on SQLite its code, know one column less.

Between a migration and the functions that follow it, PostgreSQL has the tables of the later release and the functions
of this one, while workers go on. On SQLite older workers go on like that for as long as there are any. `make faults`
runs all of tests/contract on such tables (`pytest --wider`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from detent.testing.harness import Harness
from detent.testing.stores import plain_connection
from prove.workflows.lives import LEASE, LIVES, Calls, declare
from tests.migrations.wider import COLUMN, widen


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path / "calls")


@pytest.fixture
def harness(store_url: str, calls: Calls) -> Iterator[Harness]:
    widen(store_url)
    with closing(plain_connection(store_url)) as connection:
        connection.execute("CREATE TABLE booked (job_id bigint NOT NULL, amount bigint NOT NULL)")
        connection.commit()
    with closing(Harness(store_url, lease=LEASE)) as one:
        declare(one, calls)
        yield one


@pytest.mark.timeout(240)
def test_workflows_go_on_between_a_migration_and_its_functions(harness: Harness) -> None:
    """F25, L8: steps, transactions, waits, signals, children, scopes, generations and undo."""
    for name, life in LIVES.items():
        job = harness.app.enqueue(harness.app.find_task(life.body).call())
        life.live(harness, job)
        harness.work(skip=True)
        assert job.refresh().state == life.state, (name, job.error)
        if life.state == "succeeded":
            assert job.result == life.result, name
    assert harness.store.verify() == []


def test_the_column_is_there(store_url: str) -> None:
    """Otherwise the tests above prove nothing."""
    widen(store_url)
    table = "detent_workflow_step" if store_url.startswith("sqlite") else "detent.workflow_step"
    with closing(plain_connection(store_url)) as connection:
        assert connection.execute(f"SELECT {COLUMN} FROM {table}").fetchall() == []
