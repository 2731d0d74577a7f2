"""The floor on PostgreSQL: a bare loop over the same record, as little as can be had of it.

`ready` ordered by lane, time and id; the execution in flight in the job's row; one row of `execution` at the end; one
lease row a claim, and a finish that asks for it; WHEN guards on state and committed_at; two CHECKs; the unique commit.
No keys, groups, tenants' turns, due times, refusals, second looks, retries or translation of errors: those are what
Detent adds.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import psycopg

from benchmarks.sides import BATCH, LEASE, TASK, WORKER, payload
from detent.store.postgres.statement import numbers, texts

__all__ = ["PostgresFloor", "make"]

_SCHEMA = """
CREATE SCHEMA floor;
CREATE TABLE floor.job (
  id           bigint      PRIMARY KEY,
  tenant       text        NOT NULL DEFAULT '',
  task         text        NOT NULL,
  queue        text        NOT NULL DEFAULT 'default',
  priority     smallint    NOT NULL DEFAULT 0,
  due_at       timestamptz NOT NULL,
  payload      text        NOT NULL,
  created_at   timestamptz NOT NULL,
  attempts_max integer     NOT NULL DEFAULT 4,
  state        text        NOT NULL DEFAULT 'pending',
  attempt      integer     NOT NULL DEFAULT 0,
  ended        integer     NOT NULL DEFAULT 0,
  result       text,
  error        text,
  finished_at  timestamptz,
  lease_id     bigint,
  leased_at    timestamptz,
  started_at   timestamptz,
  committed_at timestamptz,
  CHECK ((state = 'running') = (ended < attempt)),
  CHECK (state <> 'succeeded' OR committed_at IS NOT NULL)
) WITH (fillfactor = 50);
CREATE TABLE floor.ready (
  lane_id integer, ready_at timestamptz, job_id bigint, PRIMARY KEY (lane_id, ready_at, job_id)
);
CREATE TABLE floor.lease (
  id bigint PRIMARY KEY, worker text NOT NULL, expires_at timestamptz NOT NULL, job_ids bigint[] NOT NULL
);
CREATE INDEX ON floor.lease (expires_at);
CREATE TABLE floor.execution (
  job_id       bigint      NOT NULL,
  attempt      integer     NOT NULL,
  worker       text        NOT NULL,
  leased_at    timestamptz NOT NULL,
  started_at   timestamptz,
  committed_at timestamptz,
  done_at      timestamptz,
  outcome      text        NOT NULL,
  next_state   text        NOT NULL,
  PRIMARY KEY (job_id, attempt)
);
CREATE UNIQUE INDEX ON floor.execution (job_id) WHERE committed_at IS NOT NULL;

CREATE FUNCTION floor.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
CREATE TRIGGER guard AFTER UPDATE OF state ON floor.job FOR EACH ROW
  WHEN (NOT ((OLD.state = 'running' AND NEW.state = 'succeeded') OR (OLD.state = 'pending' AND NEW.state = 'running')))
  EXECUTE FUNCTION floor.refuse();
CREATE TRIGGER once AFTER UPDATE OF committed_at ON floor.job FOR EACH ROW
  WHEN (OLD.committed_at IS NOT NULL) EXECUTE FUNCTION floor.refuse();

CREATE FUNCTION floor.enqueue(p_ids bigint[], p_payloads text[], p_task text) RETURNS void
LANGUAGE plpgsql SET jit = off AS $$
DECLARE
  t timestamptz := clock_timestamp();
BEGIN
  INSERT INTO floor.job (id, task, due_at, payload, created_at)
    SELECT u.id, p_task, t, u.payload, t FROM unnest(p_ids, p_payloads) AS u (id, payload);
  INSERT INTO floor.ready SELECT 1, t, u.id FROM unnest(p_ids) AS u (id);
END $$;

CREATE FUNCTION floor.claim(
  p_lease bigint, p_worker text, p_limit integer, p_seconds float8, p_at timestamptz, p_id bigint
)
RETURNS TABLE (id bigint, attempt integer, task text, payload text, at timestamptz)
LANGUAGE plpgsql SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  t    timestamptz := clock_timestamp();
  ids  bigint[];
  last timestamptz;
BEGIN
  WITH gone AS (
    DELETE FROM floor.ready WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM floor.ready r WHERE r.lane_id = 1 AND (r.ready_at, r.job_id) > (p_at, p_id)
       ORDER BY r.ready_at, r.job_id LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING ready_at, job_id)
  SELECT array_agg(g.job_id), max(g.ready_at) INTO ids, last FROM gone g;
  IF ids IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO floor.lease VALUES (p_lease, p_worker, t + make_interval(secs => p_seconds), ids);
  RETURN QUERY
    UPDATE floor.job SET state = 'running', attempt = attempt + 1, lease_id = p_lease, leased_at = t
     WHERE id = ANY (ids) AND state = 'pending'
    RETURNING id, attempt, task, payload, last;
END $$;

CREATE FUNCTION floor.finish(p_ids bigint[], p_attempt integer, p_worker text) RETURNS bigint
LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$
DECLARE
  t    timestamptz := clock_timestamp();
  done bigint;
BEGIN
  WITH ended AS (
    UPDATE floor.job j
       SET state = 'succeeded', ended = j.attempt, started_at = t, committed_at = t, finished_at = t
     WHERE j.id = ANY (p_ids) AND j.attempt = p_attempt AND j.state = 'running'
       AND (SELECT l.expires_at FROM floor.lease l WHERE l.id = j.lease_id) > t
    RETURNING j.id, j.attempt, j.leased_at)
  INSERT INTO floor.execution
    SELECT e.id, e.attempt, p_worker, e.leased_at, t, t, t, 'done', 'succeeded' FROM ended e;
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END $$;
"""
_ONE = """
WITH t AS MATERIALIZED (SELECT clock_timestamp() AS t),
     made AS (INSERT INTO floor.job (id, task, due_at, payload, created_at)
                SELECT %s::bigint, %s::text, t, %s::text, t FROM t RETURNING id)
INSERT INTO floor.ready SELECT 1, t, made.id FROM made, t
"""
_TELL = """
WITH t AS MATERIALIZED (SELECT clock_timestamp() AS t),
     made AS (INSERT INTO floor.job (id, task, due_at, payload, created_at)
                SELECT %s::bigint, %s::text, t, %s::text, t FROM t RETURNING id),
     placed AS (INSERT INTO floor.ready SELECT 1, t, made.id FROM made, t RETURNING job_id)
SELECT pg_notify('floor', '') FROM placed
"""
_MANY = "SELECT floor.enqueue(%s::bigint[], %s::text[], %s::text)"
_CLAIM = "SELECT * FROM floor.claim(%s::bigint, %s::text, %s::integer, %s::float8, %s::timestamptz, %s::bigint)"
_FINISH = "SELECT floor.finish(%s::bigint[], %s::integer, %s::text)"


def make(url: str) -> None:
    """Give an empty database the floor's schema."""
    with psycopg.connect(url) as connection:
        connection.execute(_SCHEMA)


class PostgresFloor:
    """Two connections in autocommit with prepared statements: one for claims, one for the rest."""

    def __init__(self, url: str, batch: int = BATCH) -> None:
        self._url = url
        self._batch = batch
        self._claims = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._others = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._leases = itertools.count(time.time_ns())
        self._bound: tuple[Any, int] = ("-infinity", 0)

    def jobs(self, first: int, count: int) -> Sequence[tuple[int, str]]:
        return [(number, payload(number)) for number in range(first, first + count)]

    def enqueue(self, jobs: Sequence[tuple[int, str]]) -> None:
        if len(jobs) == 1:
            self._others.execute(_ONE, (jobs[0][0], TASK, jobs[0][1]))
        else:
            self._others.execute(_MANY, (numbers([job[0] for job in jobs]), texts([job[1] for job in jobs]), TASK))

    def tell(self, number: int, text: str) -> None:
        """Enqueue one, and wake whoever waits."""
        self._others.execute(_TELL, (number, TASK, text))

    def listen(self) -> None:
        """From now on `wait` hears of new jobs."""
        self._ears = psycopg.connect(self._url, autocommit=True)
        self._ears.execute("LISTEN floor")

    def wait(self, seconds: float) -> None:
        """Until somebody tells, or so long."""
        for _ in self._ears.notifies(timeout=seconds, stop_after=1):
            return

    def claim(self) -> Sequence[Any]:
        given = (next(self._leases), WORKER, self._batch, LEASE, *self._bound)
        rows = self._claims.execute(_CLAIM, given).fetchall()
        if rows:
            last = rows[-1][4]
            self._bound = (last, max(row[0] for row in rows))
        return rows

    def finish(self, batch: Sequence[Any]) -> None:
        ((done,),) = self._others.execute(_FINISH, (numbers([row[0] for row in batch]), batch[0][1], WORKER)).fetchall()
        assert done == len(batch)

    def succeeded(self) -> int:
        rows = self._others.execute("SELECT count(*) FROM floor.job WHERE state = 'succeeded'").fetchall()
        return int(rows[0][0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._claims.close()
        self._others.close()
