"""A reader that keeps its snapshot makes the write-ahead log of SQLite grow. Only `make faults` runs it: a worker looks
twice a minute."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from detent.store.sqlite.driver.write_ahead_log import LONG_BYTES
from tests.faults.ledger import Ring
from tests.processes.worker_processes import until

PIECE = "x" * 500_000


@pytest.mark.timeout(600)
def test_a_worker_says_that_a_reader_makes_the_log_grow(sqlite_ring: Ring, whole: bool) -> None:
    """G6, M2: in its log and by an alert, which ends when the reader does."""
    if not whole:
        pytest.skip("part of make faults")
    path = Path(sqlite_ring.url.removeprefix("sqlite:///"))
    worker = sqlite_ring.worker(slots=1)
    sqlite_ring.all_done([sqlite_ring.send("work", ms=1).id])
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("CREATE TABLE filler (text)")
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM filler").fetchone()
            while path.with_name(f"{path.name}-wal").stat().st_size < LONG_BYTES + len(PIECE):
                writer.execute("INSERT INTO filler VALUES (?)", (PIECE,))
            until(lambda: sqlite_ring.app.alerts.list(state="firing"), "an alert", 120.0)
            (alert,) = sqlite_ring.app.alerts.list(state="firing")
            assert alert.id == "log_growth"
            assert f"{os.getpid()}" in alert.message
            until(lambda: "log_growth: the write-ahead log holds" in worker.log, "a line in the log")
        until(lambda: not sqlite_ring.app.alerts.list(state="firing"), "the end of the alert", 120.0)
