"""Jobs that stand in the way: many that no claim may take, all of them before those that it may.

They go in by the few statements below, since twenty thousand enqueues would take minutes. They are what enqueues
would have made: a test asks `verify` about a small crowd.
"""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any, NamedTuple

from detent.testing.stores import START, is_sqlite, plain_connection

__all__ = ["KNOWN_TASK", "PAUSED", "SIZE", "Kind", "fill"]

SIZE = 20_000
"""Jobs of each of the three kinds in a large crowd."""
KNOWN_TASK = "mail.send"
PAUSED = "paused"

_MICROS = 1_000_000
_DAY_AGO = START - timedelta(days=1)


class Kind(NamedTuple):
    """Jobs of one sort, in lanes of one job or more each."""

    queue: str
    task: str
    priority: int
    waiting: bool


KINDS = (
    Kind("default", KNOWN_TASK, 10, waiting=True),
    Kind("default", "nobody.knows", 10, waiting=False),
    Kind(PAUSED, KNOWN_TASK, 10, waiting=False),
)
"""Due later, of a task that this worker does not know, and in a queue that is paused."""

_SPANS = """
INSERT INTO {p}job_span (created_at, block, first_id, last_id)
SELECT created_at, id >> 10, min(id), max(id) FROM {p}job GROUP BY created_at, id >> 10
"""
_SQLITE = {
    "group": "INSERT INTO detent_lane_group (queue, task) VALUES (?, ?) ON CONFLICT DO NOTHING",
    "lane": """
        INSERT INTO detent_lane (id, queue, task, tenant, priority)
        SELECT (id << 32) + 1, queue, task, '', ? FROM detent_lane_group WHERE queue = ? AND task = ? RETURNING id
    """,
    "job": """
        WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :size)
        INSERT INTO detent_job (id, task, queue, priority, due_at, expires_at, payload, nonce, created_at, attempts_max)
        SELECT :first + n, :task, :queue, :priority, :due + n, :expires + n, '{}', 1, :created, 4 FROM number
    """,
    "ready": """
        WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :size)
        INSERT INTO detent_ready (lane_id, ready_at, job_id, expires_at)
        SELECT :lane, :due + n, :first + n, :expires + n FROM number
    """,
    "waiting": """
        WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :size)
        INSERT INTO detent_waiting (lane_id, due_at, job_id, expires_at, priority)
        SELECT :lane, :due + n, :first + n, :expires + n, :priority FROM number
    """,
    "ids": "UPDATE detent_ids SET next = ?",
}
_POSTGRES = {
    "group": "INSERT INTO detent.lane_group (queue, task) VALUES (%s, %s) ON CONFLICT DO NOTHING",
    "lane": """
        INSERT INTO detent.lane (id, queue, task, tenant, priority)
        SELECT (id::bigint << 32) + nextval('detent.lane_id_seq'), queue, task, '', %s FROM detent.lane_group
         WHERE queue = %s AND task = %s RETURNING id
    """,
    "job": """
        INSERT INTO detent.job (id, task, queue, priority, due_at, expires_at, payload, nonce, created_at, attempts_max)
        SELECT %(first)s + n, %(task)s, %(queue)s, %(priority)s, %(due)s + n * interval '1 microsecond',
               %(expires)s + n * interval '1 microsecond', '{}', 1, %(created)s, 4
          FROM generate_series(1, %(size)s) n
    """,
    "ready": """
        INSERT INTO detent.ready (lane_id, ready_at, job_id, expires_at)
        SELECT %(lane)s, %(due)s + n * interval '1 microsecond', %(first)s + n,
               %(expires)s + n * interval '1 microsecond'
          FROM generate_series(1, %(size)s) n
    """,
    "waiting": """
        INSERT INTO detent.waiting (lane_id, due_at, job_id, expires_at, priority)
        SELECT %(lane)s, %(due)s + n * interval '1 microsecond', %(first)s + n,
               %(expires)s + n * interval '1 microsecond', %(priority)s
          FROM generate_series(1, %(size)s) n
    """,
    "ids": "SELECT setval('detent.id_seq', %s)",
}


def fill(url: str, size: int) -> None:
    """Put `size` jobs of each kind into a ready database: due, if they are, since yesterday, and otherwise tomorrow;
    expiring a day after that. The queue `PAUSED` is not paused by this."""
    statements = _SQLITE if is_sqlite(url) else _POSTGRES
    with closing(plain_connection(url)) as connection:
        for number, kind in enumerate(KINDS):
            due = START + timedelta(days=1) if kind.waiting else _DAY_AGO
            values: dict[str, Any] = kind._asdict() | {
                "size": size,
                "first": number * size,
                "due": _time(url, due),
                "expires": _time(url, START + timedelta(days=2)),
                "created": _time(url, _DAY_AGO),
            }
            connection.execute(statements["group"], (kind.queue, kind.task))
            lane = (kind.priority, kind.queue, kind.task)
            ((values["lane"],),) = connection.execute(statements["lane"], lane).fetchall()
            connection.execute(statements["job"], values)
            connection.execute(statements["waiting" if kind.waiting else "ready"], values)
        connection.execute(_SPANS.format(p="detent_" if is_sqlite(url) else "detent."))
        connection.execute(statements["ids"], (len(KINDS) * size + 1,))
        connection.commit()


def _time(url: str, at: Any) -> Any:
    return round(at.timestamp() * _MICROS) if is_sqlite(url) else at
