"""Very many lanes, made by a few statements: with or without ready jobs, of tenants or of limit keys."""

from __future__ import annotations

from contextlib import closing

from detent.model.clock import to_micros
from detent.testing.stores import START, is_sqlite, plain_connection

__all__ = ["JOBS", "add_lanes"]

JOBS = 1_000
"""Lanes whose ready row has a job. No claim of these tests comes further."""
_FIRST_JOB = 1_000_000

_NUMBERS = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})"
_GROUP = """
INSERT INTO {p}lane_group (queue, task, version) VALUES ('{queue}', '{task}', {version}) ON CONFLICT DO NOTHING
"""
_LANES = f"""
{_NUMBERS}
INSERT INTO {{p}}lane (id, queue, task, tenant, priority, limit_key, version)
SELECT (CAST(g.id AS bigint) << 32) + {{offset}} + n, g.queue, g.task, {{tenant}}, 0, {{key}}, g.version
  FROM number, {{p}}lane_group g WHERE g.queue = '{{queue}}' AND g.task = '{{task}}' AND g.version = {{version}}
"""
_READY = f"""
{_NUMBERS}
INSERT INTO {{p}}ready (lane_id, ready_at, job_id)
SELECT (CAST(g.id AS bigint) << 32) + {{offset}} + n, {{now}}, {{first}} + n
  FROM number, {{p}}lane_group g WHERE g.queue = '{{queue}}' AND g.task = '{{task}}' AND g.version = {{version}}
"""
_JOBS = f"""
{_NUMBERS.replace("{many}", "{jobs}")}
INSERT INTO {{p}}job (id, task, queue, tenant, limit_key, priority, due_at, payload, nonce, created_at, attempts_max)
SELECT {{first}} + n, '{{task}}', '{{queue}}', {{tenant}}, nullif({{key}}, ''), 0, {{now}}, '{{{{}}}}', 1, {{now}}, 4
  FROM number
"""


def add_lanes(
    url: str,
    many: int,
    *,
    ready: bool,
    task: str = "mail.send",
    queue: str = "default",
    keys: bool = False,
    version: int = 0,
) -> None:
    """Add lanes of as many tenants, or of as many limit keys of one tenant, behind those that are there."""
    sqlite = is_sqlite(url)
    names = f"'{many:06}/' || n"
    values = {
        "p": "detent_" if sqlite else "detent.",
        "many": many,
        "jobs": min(many, JOBS),
        "offset": 10 * many,
        "first": _FIRST_JOB + 10 * many,
        "task": task,
        "queue": queue,
        "version": version,
        "tenant": "''" if keys else names,
        "key": names if keys else "''",
        "now": str(to_micros(START, field="now")) if sqlite else f"'{START.isoformat()}'::timestamptz",
    }
    with closing(plain_connection(url)) as connection:
        for statement in (_GROUP, _LANES, *((_READY, _JOBS) if ready else ())):
            connection.execute(statement.format(**values))
        connection.commit()
        if not sqlite:
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")
