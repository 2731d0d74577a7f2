"""The log beside the file: how connections are set, and how it is kept short."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from detent.model.clock import SystemClock
from detent.store.contract import Verbs
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.store import SqliteStore
from tests.store.sqlite.other_process import new_job

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


LONG = 8 << 20


@pytest.fixture
def long_at(monkeypatch: pytest.MonkeyPatch) -> int:
    """A log is long at 8 MB: the test need not write 64."""
    monkeypatch.setattr("detent.store.sqlite.driver.write_ahead_log.LONG_BYTES", LONG)
    return LONG


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "detent.store"]


def test_a_log_that_grows_behind_a_reader_is_reported(
    tmp_path: Path, long_at: int, caplog: pytest.LogCaptureFixture
) -> None:
    """G6: it grew without bound, and nothing said so. The report names the reader, and comes with each doubling."""
    path = tmp_path / "t.db"
    with closing(SqliteStore(str(path), clock=SystemClock())) as store:
        store.ready()
        fill(store, 1)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM detent_job").fetchone()
            fill(store, 40)
            grown = store.log_growth()
            assert grown is not None
            assert grown.is_long
            assert grown.bytes == (tmp_path / "t.db-wal").stat().st_size
            assert grown.readers == (os.getpid(),)
            said = warnings(caplog)
            assert 1 <= len(said) <= 3
            assert all(f"(process {os.getpid()}) keeps a snapshot open" in line for line in said)
        fill(store, 10)
        short = store.log_growth()
        assert short is not None
        assert not short.is_long
        assert short.bytes < LOG_BYTES_MAX + 2 * BATCH_BYTES
        assert len(warnings(caplog)) <= 3


def test_one_long_transaction_is_not_reported(tmp_path: Path, long_at: int, caplog: pytest.LogCaptureFixture) -> None:
    """A bulk load makes the log long for a moment; the next write begins it anew."""
    with closing(SqliteStore(str(tmp_path / "t.db"), clock=SystemClock())) as store:
        store.ready()
        store.together(lambda verbs: fill_in(verbs, 2 * long_at // BATCH_BYTES))
        grown = store.log_growth()
        assert grown is not None
        assert grown.is_long
        fill(store, 2)
        after = store.log_growth()
        assert after is not None
        assert not after.is_long
    assert warnings(caplog) == []


def fill_in(verbs: Verbs, batches: int) -> None:
    for _ in range(batches):
        first = verbs.ids_reserve(10)
        verbs.job_enqueue([new_job(first + n, '"' + "x" * (BATCH_BYTES // 10) + '"') for n in range(10)])


def test_a_checkpoint_that_fails_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """R4: what was committed is durable, so nothing fails; but the log grows, and nothing said why."""
    with closing(SqliteStore(str(tmp_path / "t.db"), clock=SystemClock())) as store:
        store.ready()
        store._file._checkpointer = keeper = sqlite3.connect(tmp_path / "t.db", check_same_thread=False)
        keeper.close()
        fill(store, 12)
        (said,) = warnings(caplog)
        assert "cannot be checkpointed: Cannot operate on a closed database" in said


def test_a_log_in_memory_does_not_grow() -> None:
    with closing(SqliteStore(":memory:", clock=SystemClock())) as store:
        store.ready()
        assert store.log_growth() is None
