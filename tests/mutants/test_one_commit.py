"""The record of a commit, and SQLite's way to put one row in the place of another without asking."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from detent.model.clock import TurnableClock
from detent.store.open import open_store
from detent.testing.stores import START, dump, plain_connection
from tests.contract.jobs.sample_jobs import succeeded

SECOND = """
INSERT OR REPLACE INTO detent_execution
  (job_id, attempt, worker, leased_at, started_at, committed_at, done_at, outcome, next_state, counted)
SELECT job_id, attempt + 1, worker, leased_at, started_at, committed_at, done_at, outcome, next_state, counted
  FROM detent_execution
"""


def test_a_commit_is_not_replaced_by_that_of_another_attempt(tmp_path: Path) -> None:
    """C1, E1: the row that stands in the way of the unique index would be deleted, and no trigger on DELETE asked."""
    url = f"sqlite:///{tmp_path}/t.db"
    with closing(open_store(url, clock=TurnableClock(START))) as store:
        store.ready()
        succeeded(store)
        before = dump(url)
        with closing(plain_connection(url)) as connection, pytest.raises(sqlite3.IntegrityError, match="DT041"):
            connection.execute(SECOND)
        assert dump(url) == before
