"""The log beside the file: how connections are set, and how it is kept short."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from detent.model.clock import SystemClock
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.store import SqliteStore
from tests.store.sqlite.kit import new_job

LOG_BYTES_MAX = 4 << 20
BATCH_BYTES = 1 << 20


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_every_connection_syncs_and_none_copies_the_log_back_by_itself(tmp_path: Path) -> None:
    """G8: acknowledged means synced."""
    database = Database(str(tmp_path / "t.db"))
    database.create_file()
    with database.writing() as writer, database.reading() as reader:
        for connection in (writer, reader):
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            assert pragma(connection, "journal_mode") == "wal"
            assert pragma(connection, "synchronous") == 2
            assert pragma(connection, "wal_autocheckpoint") == 0
            assert pragma(connection, "mmap_size") == 0
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("CREATE TABLE t (x)")
    database.close()


def fill(store: SqliteStore, batches: int) -> None:
    for _ in range(batches):
        first = store.ids_reserve(10)
        store.job_enqueue([new_job(first + n, '"' + "x" * (BATCH_BYTES // 10) + '"') for n in range(10)])


def test_the_log_stays_short(tmp_path: Path) -> None:
    path, log = tmp_path / "t.db", tmp_path / "t.db-wal"
    with closing(SqliteStore(str(path), clock=SystemClock())) as store:
        store.ready()
        longest = 0
        for _ in range(20):
            fill(store, 1)
            longest = max(longest, log.stat().st_size)
        assert longest < LOG_BYTES_MAX + 2 * BATCH_BYTES
        assert path.stat().st_size > 10 * BATCH_BYTES


def test_a_long_look_lengthens_the_log_and_no_more(tmp_path: Path) -> None:
    """A reader keeps what it looks at; nobody fails, and when it has gone the log becomes short again."""
    path, log = tmp_path / "t.db", tmp_path / "t.db-wal"
    with closing(SqliteStore(str(path), clock=SystemClock())) as store:
        store.ready()
        fill(store, 1)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            jobs = reader.execute("SELECT count(*) FROM detent_job").fetchone()
            fill(store, 12)
            assert log.stat().st_size > LOG_BYTES_MAX
            assert reader.execute("SELECT count(*) FROM detent_job").fetchone() == jobs
        fill(store, 2 * log.stat().st_size // BATCH_BYTES)
        assert log.stat().st_size < LOG_BYTES_MAX + 2 * BATCH_BYTES
