"""`python -m benchmarks.fill URL --finished N --pending N`: a past of millions of jobs, made in bulk.

The record is complete: a finished job has its execution row, a pending one its place in the line, and `detent verify`
finds nothing wrong. It is the one thing that writes around the guards, which would ask every row for a move that never
took place, so it is for throw-away databases: on PostgreSQL triggers are off in this session alone
(`session_replication_role`, a superuser's right), on SQLite they are taken out and put back in the same transaction.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing

import psycopg

from benchmarks.sides import TASK
from detent.model.records import NewJob
from detent.store.open import open_store

__all__ = ["fill"]

CHUNK = 250_000
DAY = 86_400.0
PAYLOAD = '{"t":0.0}'

_IDS = "SELECT detent.ids_reserve_v1(%s)"
_FINISHED = """
WITH t AS MATERIALIZED (SELECT detent.clock() - make_interval(secs => %(ago)s) AS t),
     made AS (
  INSERT INTO detent.job (id, task, due_at, payload, nonce, created_at, attempts_max, state, attempt, ended,
                          finished_at, lease_id, leased_at, started_at, committed_at)
  SELECT %(first)s + g, %(task)s, t, %(payload)s, 1, t, 4, 'succeeded', 1, 1, t, %(first)s, t, t, t
    FROM t, generate_series(0, %(count)s - 1) AS g
  RETURNING id, leased_at)
INSERT INTO detent.execution (job_id, attempt, worker, leased_at, started_at, committed_at, done_at, outcome,
                              next_state, counted)
SELECT id, 1, 'fill', leased_at, leased_at, leased_at, leased_at, 'done', 'succeeded', true FROM made
"""
_COUNTED = """
INSERT INTO detent.finished_delta (tenant, queue, task, state, jobs)
VALUES ('', 'default', %(task)s, 'succeeded', %(count)s)
"""
_DATED = """
INSERT INTO detent.job_span (created_at, block, first_id, last_id)
SELECT created_at, id >> 10, min(id), max(id) FROM detent.job WHERE id BETWEEN %(first)s AND %(first)s + %(count)s - 1
 GROUP BY created_at, id >> 10
"""
_PENDING = """
WITH t AS MATERIALIZED (SELECT detent.clock() AS t),
     made AS (
  INSERT INTO detent.job (id, task, due_at, payload, nonce, created_at, attempts_max)
  SELECT %(first)s + g, %(task)s, t, %(payload)s, 1, t, 4 FROM t, generate_series(0, %(count)s - 1) AS g
  RETURNING id, due_at)
INSERT INTO detent.ready (lane_id, ready_at, job_id)
SELECT (SELECT r.lane_id FROM detent.ready r WHERE r.job_id = %(like)s), due_at, id FROM made
"""

_SQLITE_IDS = "UPDATE detent_ids SET next = next + :count RETURNING next - :count"
_SQLITE_SERIES = "WITH RECURSIVE g (id) AS (SELECT :first UNION ALL SELECT id + 1 FROM g LIMIT :count)"
_SQLITE_NOW = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
_SQLITE_FINISHED = f"""
INSERT INTO detent_job (id, task, due_at, payload, nonce, created_at, attempts_max, state, attempt, ended,
                        finished_at, lease_id, leased_at, started_at, committed_at)
{_SQLITE_SERIES} SELECT id, :task, :t, :payload, 1, :t, 4, 'succeeded', 1, 1, :t, :first, :t, :t, :t FROM g
"""
_SQLITE_EXECUTED = f"""
INSERT INTO detent_execution (job_id, attempt, worker, leased_at, started_at, committed_at, done_at, outcome,
                              next_state, counted)
{_SQLITE_SERIES} SELECT id, 1, 'fill', :t, :t, :t, :t, 'done', 'succeeded', 1 FROM g
"""
_SQLITE_COUNTED = """
INSERT INTO detent_finished_delta (tenant, queue, task, state, jobs)
VALUES ('', 'default', :task, 'succeeded', :count)
"""
_SQLITE_DATED = """
INSERT INTO detent_job_span (created_at, block, first_id, last_id)
SELECT created_at, id >> 10, min(id), max(id) FROM detent_job WHERE id BETWEEN :first AND :first + :count - 1
 GROUP BY created_at, id >> 10
"""
_SQLITE_PENDING = f"""
INSERT INTO detent_job (id, task, due_at, payload, nonce, created_at, attempts_max)
{_SQLITE_SERIES} SELECT id, :task, :t, :payload, 1, :t, 4 FROM g
"""
_SQLITE_READY = f"""
INSERT INTO detent_ready (lane_id, ready_at, job_id)
{_SQLITE_SERIES} SELECT (SELECT lane_id FROM detent_ready WHERE job_id = :like), :t, id FROM g
"""


def fill(url: str, finished: int, pending: int) -> None:
    """Add finished and pending jobs to a database that has Detent's schema."""
    like = _enqueued(url) if pending else 0
    (_fill_postgres if url.startswith("postgresql:") else _fill_sqlite)(url, finished, max(0, pending - 1), like)


def _enqueued(url: str) -> int:
    """One job in the ordinary way: the others stand in its lane."""
    with closing(open_store(url)) as store:
        job_id = store.ids_reserve(1)
        store.job_enqueue([NewJob(id=job_id, task=TASK, payload=PAYLOAD, nonce=1, fingerprint="")])
        return job_id


def _chunks(total: int) -> list[int]:
    return [min(CHUNK, total - start) for start in range(0, total, CHUNK)]


def _fill_postgres(url: str, finished: int, pending: int, like: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        given = {"task": TASK, "payload": PAYLOAD, "like": like}
        for statement, total in ((_FINISHED, finished), (_PENDING, pending)):
            for number, count in enumerate(_chunks(total)):
                ((first,),) = connection.execute(_IDS, (count,)).fetchall()
                ago = DAY * (1 - number * CHUNK / total)
                connection.execute(statement, {**given, "first": first, "count": count, "ago": ago})
                connection.execute(_DATED, {"first": first, "count": count})
                if statement is _FINISHED:
                    connection.execute(_COUNTED, {**given, "count": count})
        connection.execute("VACUUM (ANALYZE)")


def _fill_sqlite(url: str, finished: int, pending: int, like: int) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        guards = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            file.execute(f"DROP TRIGGER {name}")
        ((now,),) = file.execute(f"SELECT {_SQLITE_NOW}").fetchall()
        given = {"task": TASK, "payload": PAYLOAD, "like": like}
        for statements, total, first_at in (
            ((_SQLITE_FINISHED, _SQLITE_EXECUTED, _SQLITE_COUNTED, _SQLITE_DATED), finished, now - int(DAY * 1e6)),
            ((_SQLITE_PENDING, _SQLITE_READY, _SQLITE_DATED), pending, now),
        ):
            for number, count in enumerate(_chunks(total)):
                ((first,),) = file.execute(_SQLITE_IDS, {"count": count}).fetchall()
                for statement in statements:
                    file.execute(statement, {**given, "first": first, "count": count, "t": first_at + number})
        for _, text in guards:
            file.execute(text)
        file.execute("COMMIT")
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def main(arguments: Sequence[str]) -> None:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fill", description="Fill a throw-away database.")
    parser.add_argument("url")
    parser.add_argument("--finished", type=int, default=0)
    parser.add_argument("--pending", type=int, default=0)
    options = parser.parse_args(arguments)
    fill(options.url, options.finished, options.pending)


if __name__ == "__main__":
    main(sys.argv[1:])
