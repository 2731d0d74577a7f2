"""The floor of steps on SQLite: one INSERT that checks the holder, and its COMMIT; for one workflow or for many.

The same as on PostgreSQL, on the connection of the floor of jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from benchmarks.floor_sqlite import SqliteFloor, Transaction, connect, make, now
from benchmarks.sides import FINGERPRINT

__all__ = ["SqliteStepFloor", "make_steps"]

_SCHEMA = """
CREATE TABLE step (
  job_id      INTEGER NOT NULL,
  generation  INTEGER NOT NULL,
  path        TEXT    NOT NULL,
  seq         INTEGER NOT NULL,
  kind        TEXT    NOT NULL,
  scope       TEXT    NOT NULL,
  attempt     INTEGER NOT NULL,
  fingerprint TEXT,
  beside      INTEGER NOT NULL,
  secret      INTEGER NOT NULL,
  undo        INTEGER NOT NULL,
  began_at    INTEGER NOT NULL,
  done_at     INTEGER NOT NULL,
  value       TEXT,
  error       TEXT,
  PRIMARY KEY (job_id, generation, path),
  CHECK ((value IS NULL) <> (error IS NULL))
) STRICT, WITHOUT ROWID;
"""
_STEP = """
INSERT INTO step (job_id, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo,
                  began_at, done_at, value)
SELECT j.id, 1, ?1, ?2, 'call', '', j.attempt, ?3, 0, 0, 0, ?4, ?4, ?5
  FROM job j
 WHERE j.id = ?6 AND j.attempt = ?7 AND j.state = 'running'
   AND (SELECT l.expires_at FROM lease l WHERE l.id = j.lease_id) > ?4
"""


def make_steps(url: str) -> None:
    """Make a file with the floor's schema, with steps."""
    make(url)
    with closing(connect(url)) as connection:
        connection.executescript(_SCHEMA)


class SqliteStepFloor(SqliteFloor):
    """Claims and finishes as the floor of jobs does, and records steps in between."""

    def step(self, jobs: Sequence[Any], number: int) -> None:
        """Record a step of one workflow, or the same one of many in one transaction."""
        t, path = now(), f"noop#{number}"
        with Transaction(self._connection) as do:
            rows = [(path, number, FINGERPRINT, t, "null", *job[:2]) for job in jobs]
            made = do.executemany(_STEP, rows).rowcount
        assert made == len(jobs)
