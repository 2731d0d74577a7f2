"""The floor on SQLite: a bare loop over the same record, as little as can be had of it.

The same as on PostgreSQL, on one connection of sqlite3: WAL, synchronous FULL, BEGIN IMMEDIATE, prepared statements. No
write lock, and SQLite decides when to checkpoint.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, Self

from benchmarks.sides import BATCH, LEASE, TASK, WORKER, payload

__all__ = ["SqliteFloor", "Transaction", "connect", "make", "now"]

_SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE job (
  id           INTEGER PRIMARY KEY,
  tenant       TEXT    NOT NULL DEFAULT '',
  task         TEXT    NOT NULL,
  queue        TEXT    NOT NULL DEFAULT 'default',
  priority     INTEGER NOT NULL DEFAULT 0,
  due_at       INTEGER NOT NULL,
  payload      TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  attempts_max INTEGER NOT NULL DEFAULT 4,
  state        TEXT    NOT NULL DEFAULT 'pending',
  attempt      INTEGER NOT NULL DEFAULT 0,
  ended        INTEGER NOT NULL DEFAULT 0,
  result       TEXT,
  error        TEXT,
  finished_at  INTEGER,
  lease_id     INTEGER,
  leased_at    INTEGER,
  started_at   INTEGER,
  committed_at INTEGER,
  CHECK ((state = 'running') = (ended < attempt)),
  CHECK (state <> 'succeeded' OR committed_at IS NOT NULL)
) STRICT;
CREATE TABLE ready (
  lane_id INTEGER, ready_at INTEGER, job_id INTEGER, PRIMARY KEY (lane_id, ready_at, job_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE lease (
  id INTEGER PRIMARY KEY, worker TEXT NOT NULL, expires_at INTEGER NOT NULL, job_ids TEXT NOT NULL
) STRICT;
CREATE INDEX lease_expiring ON lease (expires_at);
CREATE TABLE execution (
  job_id       INTEGER NOT NULL,
  attempt      INTEGER NOT NULL,
  worker       TEXT    NOT NULL,
  leased_at    INTEGER NOT NULL,
  started_at   INTEGER,
  committed_at INTEGER,
  done_at      INTEGER,
  outcome      TEXT    NOT NULL,
  next_state   TEXT    NOT NULL,
  PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_commit ON execution (job_id) WHERE committed_at IS NOT NULL;
CREATE TRIGGER guard AFTER UPDATE OF state ON job FOR EACH ROW
  WHEN NOT ((OLD.state = 'running' AND NEW.state = 'succeeded') OR (OLD.state = 'pending' AND NEW.state = 'running'))
  BEGIN SELECT RAISE(ABORT, 'refused'); END;
CREATE TRIGGER once AFTER UPDATE OF committed_at ON job FOR EACH ROW
  WHEN OLD.committed_at IS NOT NULL BEGIN SELECT RAISE(ABORT, 'refused'); END;
"""
_JOB = "INSERT INTO job (id, task, due_at, payload, created_at) VALUES (?, ?, ?, ?, ?)"
_READY = "INSERT INTO ready VALUES (1, ?, ?)"
_HEAD = "SELECT ready_at, job_id FROM ready WHERE lane_id = 1 ORDER BY ready_at, job_id LIMIT ?"
_TAKE = "DELETE FROM ready WHERE lane_id = 1 AND (ready_at, job_id) <= (?, ?)"
_LEASE = "INSERT INTO lease VALUES (?, ?, ?, ?)"
_CLAIM = """
UPDATE job SET state = 'running', attempt = attempt + 1, lease_id = ?, leased_at = ?
 WHERE id IN (SELECT value FROM json_each(?)) AND state = 'pending'
RETURNING id, attempt, task, payload
"""
_DONE = """
INSERT INTO execution
SELECT j.id, attempt, :worker, leased_at, :t, :t, :t, 'done', 'succeeded'
  FROM json_each(:ids) asked JOIN job j ON j.id = asked.value
 WHERE state = 'running' AND attempt = :attempt AND (SELECT l.expires_at FROM lease l WHERE l.id = lease_id) > :t
"""
_SUCCEED = """
UPDATE job SET state = 'succeeded', ended = attempt, started_at = :t, committed_at = :t, finished_at = :t
 WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'running' AND attempt = :attempt
"""


def make(url: str) -> None:
    """Make a file with the floor's schema."""
    with closing(connect(url)) as connection:
        connection.executescript(_SCHEMA)


def connect(url: str) -> sqlite3.Connection:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, cached_statements=256)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


class SqliteFloor:
    """One connection, one transaction a call."""

    def __init__(self, url: str, batch: int = BATCH) -> None:
        self._batch = batch
        self._connection = connect(url)
        self._leases = itertools.count(time.time_ns())

    def jobs(self, first: int, count: int) -> Sequence[tuple[int, str]]:
        return [(number, payload(number)) for number in range(first, first + count)]

    def enqueue(self, jobs: Sequence[tuple[int, str]]) -> None:
        t = now()
        with Transaction(self._connection) as do:
            do.executemany(_JOB, [(number, TASK, t, text, t) for number, text in jobs])
            do.executemany(_READY, [(t, number) for number, _ in jobs])

    def claim(self) -> Sequence[Any]:
        with Transaction(self._connection) as do:
            return self._claim(do)

    def finish(self, batch: Sequence[Any]) -> None:
        with Transaction(self._connection) as do:
            self._finish(do, batch)

    def whole(self, statement: str, values: Sequence[Any]) -> None:
        """A claim, a statement of the job's own and its finish in one transaction: one sync."""
        with Transaction(self._connection) as do:
            batch = self._claim(do)
            do.execute(statement, values)
            self._finish(do, batch)

    def _claim(self, do: sqlite3.Connection) -> Sequence[Any]:
        t = now()
        lease = next(self._leases)
        heads = do.execute(_HEAD, (self._batch,)).fetchall()
        if not heads:
            return []
        do.execute(_TAKE, heads[-1])
        ids = json.dumps([head[1] for head in heads])
        do.execute(_LEASE, (lease, WORKER, t + int(LEASE * 1e6), ids))
        return do.execute(_CLAIM, (lease, t, ids)).fetchall()

    def _finish(self, do: sqlite3.Connection, batch: Sequence[Any]) -> None:
        values = {"ids": json.dumps([row[0] for row in batch]), "attempt": batch[0][1], "worker": WORKER, "t": now()}
        done = do.execute(_DONE, values).rowcount
        assert done == do.execute(_SUCCEED, values).rowcount == len(batch)

    def succeeded(self) -> int:
        ((count,),) = self._connection.execute("SELECT count(*) FROM job WHERE state = 'succeeded'").fetchall()
        return int(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()


class Transaction:
    """BEGIN IMMEDIATE … COMMIT; a measurement that fails ends as a whole, so nothing is rolled back here."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._connection.execute("COMMIT")


def now() -> int:
    return time.time_ns() // 1000
