"""Parts of tables: the rows of some jobs, queue rows, limit slots or of one run, in place of whole tables.

An invariant that concerns each job by itself holds for some jobs if it holds in tables that have only their rows. So
the name of every table in its query is replaced by a query for these rows, which an index finds:

- `of_jobs`: a range of ids, with rows about jobs that do not exist
- `of_queue_rows`: some rows of `ready` in the order of its key, with their jobs. An index leads from a job only to the
  row that it should have, so a row elsewhere is found here.
- `of_slots`: some slots of limits in the order of their key, with their jobs
- `of_run`: one batch run with its targets
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from detent.store.invariants import Dialect
from detent.store.invariants.sqlite_translation import for_sqlite

__all__ = ["JOBS_LOW", "QUEUE_ROWS", "RUN_NEXT", "SLOTS", "of_jobs", "of_queue_rows", "of_run", "of_slots"]

_TABLE = re.compile(r"\bdetent[._](\w+)\b(?!\()")
_UNBOUND_MAX = 100

_OF_JOB = (
    *("execution", "event", "waiting", "dead", "ops_run", "workflow", "workflow_step", "workflow_step_begun"),
    *("workflow_wait", "workflow_signal", "workflow_unread", "tree_cancel"),
)
_READY = """
  FROM detent.ready WHERE (lane_id, ready_at, job_id) > (%(lane)s, %(at)s, %(job)s)
 ORDER BY lane_id, ready_at, job_id LIMIT %(rows)s
"""
_SLOT = """
  FROM detent.limit_slot WHERE (limit_key, job_id) > (%(key)s, %(job)s) ORDER BY limit_key, job_id LIMIT %(rows)s
"""


def _for_both(query: str) -> dict[Dialect, str]:
    return {"postgres": query, "sqlite": for_sqlite(query)}


JOBS_LOW = _for_both("SELECT id FROM detent.job WHERE id <= %(high)s ORDER BY id DESC LIMIT 1 OFFSET %(skip)s")
"""The last of the next jobs, counted down from `high`."""

RUN_NEXT = _for_both("SELECT max(id) FROM detent.batch_run WHERE id < %(below)s")
"""The newest batch run before another."""

QUEUE_ROWS = _for_both(f"SELECT lane_id, ready_at, job_id {_READY}")
"""The next rows of the queue."""

SLOTS = _for_both(f"SELECT limit_key, job_id {_SLOT}")
"""The next slots of limits."""

_LANE_OF_JOB = """
l.queue = o.queue AND l.task = o.task AND l.tenant = o.tenant AND l.priority = o.priority
AND l.limit_key = coalesce(o.limit_key, '')
"""
_READY_OF_JOB = "r.lane_id = l.id AND r.ready_at = o.due_at AND r.job_id = o.id"
_PENDING = "id BETWEEN %(low)s AND %(high)s AND state = 'pending'"
_PENDING_LANES = f"SELECT DISTINCT queue, task, tenant, priority, limit_key FROM detent.job WHERE {_PENDING}"
_LEASED = "FROM detent.job WHERE id BETWEEN %(low)s AND %(high)s AND state = 'running'"

# An index finds a range whatever the planner estimates. A look-up for each row is fenced (OFFSET 0, or the order of
# CROSS JOIN), because a planner that expects few rows would scan the table.
_JOBS = {
    "worker": "SELECT * FROM detent.worker",
    "job": "SELECT * FROM detent.job WHERE id BETWEEN %(low)s AND %(high)s",
    **{name: f"SELECT * FROM detent.{name} WHERE job_id BETWEEN %(low)s AND %(high)s" for name in _OF_JOB},
    "child_group": "SELECT * FROM detent.child_group WHERE parent_id BETWEEN %(low)s AND %(high)s",
    "transition_log": f"""
        SELECT * FROM detent.transition_log WHERE job_id BETWEEN %(low)s AND %(high)s
        UNION ALL
        SELECT * FROM (SELECT * FROM detent.transition_log
                        WHERE job_id IS NULL AND entity = 'job' LIMIT {_UNBOUND_MAX}) unbound
    """,
    "target": """
        SELECT * FROM detent.target WHERE apply_job_id BETWEEN %(low)s AND %(high)s
        UNION
        SELECT * FROM detent.target WHERE revert_job_id BETWEEN %(low)s AND %(high)s
    """,
    "job_key": "SELECT * FROM detent.job_key WHERE until_claim AND job_id BETWEEN %(low)s AND %(high)s",
    "lease": f"""
        SELECT held.*
          FROM (SELECT DISTINCT lease_id {_LEASED}) o
         CROSS JOIN LATERAL (SELECT * FROM detent.lease l WHERE l.id = o.lease_id OFFSET 0) held
    """,
    "lane": f"""
        SELECT lane.*
          FROM ({_PENDING_LANES}) o
         CROSS JOIN LATERAL (SELECT * FROM detent.lane l WHERE {_LANE_OF_JOB} OFFSET 0) lane
    """,
    "ready": f"""
        SELECT queued.*
          FROM (SELECT * FROM detent.job WHERE {_PENDING}) o
         CROSS JOIN LATERAL (SELECT * FROM detent.lane l WHERE {_LANE_OF_JOB} OFFSET 0) l
         CROSS JOIN LATERAL (SELECT * FROM detent.ready r WHERE {_READY_OF_JOB} OFFSET 0) queued
    """,
}
# SQLite has no LATERAL; its CROSS JOIN keeps the order of tables.
_JOBS_SQLITE = {
    "lease": f"SELECT * FROM detent.lease WHERE id IN (SELECT lease_id {_LEASED})",
    "lane": f"SELECT l.* FROM ({_PENDING_LANES}) o CROSS JOIN detent.lane l ON {_LANE_OF_JOB}",
    "ready": f"""
        SELECT r.*
          FROM detent.job o CROSS JOIN detent.lane l ON {_LANE_OF_JOB} CROSS JOIN detent.ready r ON {_READY_OF_JOB}
         WHERE o.id BETWEEN %(low)s AND %(high)s AND o.state = 'pending'
    """,
}
_QUEUE = {
    "job": "SELECT * FROM detent.job WHERE id = ANY (%(ids)s)",
    **{name: f"SELECT * FROM detent.{name} WHERE job_id = ANY (%(ids)s)" for name in _OF_JOB},
    "child_group": "SELECT * FROM detent.child_group WHERE parent_id = ANY (%(ids)s)",
    "transition_log": "SELECT * FROM detent.transition_log WHERE job_id IS NOT NULL AND job_id = ANY (%(ids)s)",
    "lane": "SELECT * FROM detent.lane WHERE id = ANY (%(lanes)s)",
    "ready": f"SELECT * {_READY}",
}
_SLOTS = {
    "worker": "SELECT * FROM detent.worker",
    "job": "SELECT * FROM detent.job WHERE id = ANY (%(ids)s)",
    "execution": "SELECT * FROM detent.execution WHERE job_id = ANY (%(ids)s)",
    "limit_slot": f"SELECT * {_SLOT}",
}
_RUN = {
    "batch_run": "SELECT * FROM detent.batch_run WHERE id = %(run)s",
    **{name: f"SELECT * FROM detent.{name} WHERE run_id = %(run)s" for name in ("target", "batch_action", "mismatch")},
    "transition_log": """
        SELECT * FROM detent.transition_log
         WHERE job_id IS NULL AND entity = 'batch_run' AND entity_id = CAST(%(run)s AS TEXT)
    """,
}


@functools.cache
def of_jobs(dialect: Dialect, sql: str) -> str:
    """Return the invariant for the jobs with ids from `low` to `high`.

    Raise `KeyError` for a table whose rows are not found by job.
    """
    return _narrowed(sql, _JOBS | _JOBS_SQLITE if dialect == "sqlite" else _JOBS, dialect)


@functools.cache
def of_run(dialect: Dialect, sql: str) -> str:
    """Return the invariant for the batch run `run`."""
    return _narrowed(sql, _RUN, dialect)


@functools.cache
def of_queue_rows(dialect: Dialect, sql: str) -> str:
    """Return the invariant for the first `rows` rows of `ready` after (`lane`, `at`, `job`), with the jobs `ids` and
    the lanes `lanes` that they name."""
    return _narrowed(sql, _QUEUE, dialect)


@functools.cache
def of_slots(dialect: Dialect, sql: str) -> str:
    """Return the invariant for the first `rows` slots of limits after (`key`, `job`), with the jobs `ids` that they
    name."""
    return _narrowed(sql, _SLOTS, dialect)


def _narrowed(sql: str, tables: Mapping[str, str], dialect: Dialect) -> str:
    # In a statement with parameters, psycopg takes a bare percent sign for one.
    text = sql.replace("%", "%%") if dialect == "postgres" else sql
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    narrowed = _TABLE.sub(lambda match: f"({tables[match[1]]})", body)
    return for_sqlite(narrowed) if dialect == "sqlite" else narrowed
