"""The floor of steps on PostgreSQL: one INSERT that checks the holder, and its COMMIT; for one workflow or for many.

It keeps the record that Detent keeps of a step, in the floor's schema. Nothing looks whether the step is on record, no
workflow row is made, and no answer is read but the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from benchmarks.floor_postgres import PostgresFloor, make
from benchmarks.sides import FINGERPRINT
from detent.store.postgres.statement import numbers, texts

__all__ = ["PostgresStepFloor", "make_steps"]

_SCHEMA = """
CREATE TABLE floor.step (
  job_id      bigint      NOT NULL,
  generation  integer     NOT NULL,
  path        text        NOT NULL,
  seq         integer     NOT NULL,
  kind        text        NOT NULL,
  scope       text        NOT NULL,
  attempt     integer     NOT NULL,
  fingerprint text,
  beside      boolean     NOT NULL,
  secret      boolean     NOT NULL,
  undo        boolean     NOT NULL,
  began_at    timestamptz NOT NULL,
  done_at     timestamptz NOT NULL,
  value       text,
  error       text,
  PRIMARY KEY (job_id, generation, path),
  CHECK ((value IS NULL) <> (error IS NULL))
);
"""
_COLUMNS = """
INSERT INTO floor.step (job_id, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo,
                        began_at, done_at, value)
"""
_HELD = "j.state = 'running' AND (SELECT l.expires_at FROM floor.lease l WHERE l.id = j.lease_id) > t.t"
_ONE = f"""{_COLUMNS}
SELECT j.id, 1, %s::text, %s::integer, 'call', '', j.attempt, %s::text, false, false, false, t.t, t.t, %s::text
  FROM floor.job j, (SELECT clock_timestamp() AS t) t
 WHERE j.id = %s::bigint AND j.attempt = %s::integer AND {_HELD}
"""
_MANY = f"""{_COLUMNS}
SELECT j.id, 1, %s::text, %s::integer, 'call', '', j.attempt, u.fingerprint, false, false, false, t.t, t.t, u.value
  FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS u (id, fingerprint, value)
  JOIN floor.job j ON j.id = u.id, (SELECT clock_timestamp() AS t) t
 WHERE j.attempt = %s::integer AND {_HELD}
"""


def make_steps(url: str) -> None:
    """Give an empty database the floor's schema, with steps."""
    make(url)
    with psycopg.connect(url) as connection:
        connection.execute(_SCHEMA)


class PostgresStepFloor(PostgresFloor):
    """Claims and finishes as the floor of jobs does, and records steps in between."""

    def step(self, jobs: Sequence[Any], number: int) -> None:
        """Record a step of one workflow, or the same one of many in one transaction."""
        path = f"noop#{number}"
        if len(jobs) == 1:
            made = self._others.execute(_ONE, (path, number, FINGERPRINT, "null", *jobs[0][:2])).rowcount
        else:
            ids, prints = numbers([job[0] for job in jobs]), texts([FINGERPRINT] * len(jobs))
            values = texts(["null"] * len(jobs))
            made = self._others.execute(_MANY, (path, number, ids, prints, values, jobs[0][1])).rowcount
        assert made == len(jobs)
