"""A part of the record in place of the whole: what each table of an invariant is narrowed to, for either database.

An invariant that is judged job by job says the same of some jobs when each of its tables holds only their rows. So the
name of each table gives way to a query for these rows, found by an index. `of_jobs` is a range of ids, with whatever
speaks of a job that is not there; `of_run` one batch run with its targets; `of_places` some rows of `ready`, in the
order of its key, with their jobs: no index leads from a job to its places there, only to the one where it should stand,
so a row that stands elsewhere is met here. `of_slots` is some slots of limits, in the order of their key, with their
jobs.
"""

from __future__ import annotations

import functools
import re

from detent.store.invariants import Dialect

__all__ = ["JOBS_LOW", "PLACES", "RUN_NEXT", "SLOTS", "of_jobs", "of_places", "of_run", "of_slots"]

_TABLE = re.compile(r"\bdetent[._](\w+)\b(?!\()")
_UNBOUND_MAX = 100

_OF_JOB = ("execution", "event", "waiting", "dead", "ops_run")
_RANKED = """
l.queue = o.queue AND l.task = o.task AND l.tenant = o.tenant AND l.priority = o.priority
AND l.limit_key = coalesce(o.limit_key, '')
"""
_PLACED = "r.lane_id = l.id AND r.ready_at = o.due_at AND r.job_id = o.id"
_KEY = "(lane_id, ready_at, job_id)"

JOBS_LOW: dict[Dialect, str] = {
    "postgres": "SELECT id FROM detent.job WHERE id <= %(high)s ORDER BY id DESC LIMIT 1 OFFSET %(skip)s",
    "sqlite": "SELECT id FROM detent_job WHERE id <= :high ORDER BY id DESC LIMIT 1 OFFSET :skip",
}
"""The last of the next so many jobs, counted down from `high`."""

RUN_NEXT: dict[Dialect, str] = {
    "postgres": "SELECT max(id) FROM detent.batch_run WHERE id < %(below)s",
    "sqlite": "SELECT max(id) FROM detent_batch_run WHERE id < :below",
}
"""The newest batch run before another."""

PLACES: dict[Dialect, str] = {
    "postgres": f"""
        SELECT lane_id, ready_at, job_id FROM detent.ready
         WHERE {_KEY} > (%(lane)s, %(at)s, %(job)s) ORDER BY lane_id, ready_at, job_id LIMIT %(rows)s
    """,
    "sqlite": f"""
        SELECT lane_id, ready_at, job_id FROM detent_ready
         WHERE {_KEY} > (:lane, :at, :job) ORDER BY lane_id, ready_at, job_id LIMIT :rows
    """,
}
"""The next so many rows of the queue."""

SLOTS: dict[Dialect, str] = {
    "postgres": """
        SELECT limit_key, job_id FROM detent.limit_slot
         WHERE (limit_key, job_id) > (%(key)s, %(job)s) ORDER BY limit_key, job_id LIMIT %(rows)s
    """,
    "sqlite": """
        SELECT limit_key, job_id FROM detent_limit_slot
         WHERE (limit_key, job_id) > (:key, :job) ORDER BY limit_key, job_id LIMIT :rows
    """,
}
"""The next slots of limits."""

# A range is found by its index whatever the planner believes; a look-up for each row is fenced in (OFFSET 0, or the
# order of CROSS JOIN), since a planner that expects few rows would rather walk through all of them.
_JOBS_POSTGRES = {
    "worker": "SELECT * FROM detent.worker",
    "job": "SELECT * FROM detent.job WHERE id BETWEEN %(low)s AND %(high)s",
    **{name: f"SELECT * FROM detent.{name} WHERE job_id BETWEEN %(low)s AND %(high)s" for name in _OF_JOB},
    "transition_log": f"""
        SELECT * FROM detent.transition_log WHERE job_id BETWEEN %(low)s AND %(high)s
        UNION ALL
        (SELECT * FROM detent.transition_log WHERE job_id IS NULL AND entity = 'job' LIMIT {_UNBOUND_MAX})
    """,
    "target": """
        SELECT * FROM detent.target WHERE apply_job_id BETWEEN %(low)s AND %(high)s
        UNION
        SELECT * FROM detent.target WHERE revert_job_id BETWEEN %(low)s AND %(high)s
    """,
    "job_key": "SELECT * FROM detent.job_key WHERE until_claim AND job_id BETWEEN %(low)s AND %(high)s",
    "lease": """
        SELECT held.*
          FROM (SELECT DISTINCT lease_id FROM detent.job WHERE id BETWEEN %(low)s AND %(high)s AND state = 'running') o
         CROSS JOIN LATERAL (SELECT * FROM detent.lease l WHERE l.id = o.lease_id OFFSET 0) held
    """,
    "lane": f"""
        SELECT lane.*
          FROM (SELECT DISTINCT queue, task, tenant, priority, limit_key
                  FROM detent.job WHERE id BETWEEN %(low)s AND %(high)s AND state = 'pending') o
         CROSS JOIN LATERAL (SELECT * FROM detent.lane l WHERE {_RANKED} OFFSET 0) lane
    """,
    "ready": f"""
        SELECT place.*
          FROM (SELECT * FROM detent.job WHERE id BETWEEN %(low)s AND %(high)s AND state = 'pending') o
         CROSS JOIN LATERAL (SELECT * FROM detent.lane l WHERE {_RANKED} OFFSET 0) l
         CROSS JOIN LATERAL (SELECT * FROM detent.ready r WHERE {_PLACED} OFFSET 0) place
    """,
}
_JOBS_SQLITE = {
    "worker": "SELECT * FROM detent_worker",
    "job": "SELECT * FROM detent_job WHERE id BETWEEN :low AND :high",
    **{name: f"SELECT * FROM detent_{name} WHERE job_id BETWEEN :low AND :high" for name in _OF_JOB},
    "transition_log": f"""
        SELECT * FROM detent_transition_log WHERE job_id BETWEEN :low AND :high
        UNION ALL
        SELECT * FROM (SELECT * FROM detent_transition_log WHERE job_id IS NULL AND entity = 'job' LIMIT {_UNBOUND_MAX})
    """,
    "target": """
        SELECT * FROM detent_target WHERE apply_job_id BETWEEN :low AND :high
        UNION
        SELECT * FROM detent_target WHERE revert_job_id BETWEEN :low AND :high
    """,
    "job_key": "SELECT * FROM detent_job_key WHERE until_claim AND job_id BETWEEN :low AND :high",
    "lease": """
        SELECT * FROM detent_lease
         WHERE id IN (SELECT lease_id FROM detent_job WHERE id BETWEEN :low AND :high AND state = 'running')
    """,
    "lane": f"""
        SELECT l.*
          FROM (SELECT DISTINCT queue, task, tenant, priority, limit_key
                  FROM detent_job WHERE id BETWEEN :low AND :high AND state = 'pending') o
         CROSS JOIN detent_lane l ON {_RANKED}
    """,
    "ready": f"""
        SELECT r.*
          FROM detent_job o CROSS JOIN detent_lane l ON {_RANKED} CROSS JOIN detent_ready r ON {_PLACED}
         WHERE o.id BETWEEN :low AND :high AND o.state = 'pending'
    """,
}
_PLACES_POSTGRES = {
    "job": "SELECT * FROM detent.job WHERE id = ANY (%(ids)s)",
    **{name: f"SELECT * FROM detent.{name} WHERE job_id = ANY (%(ids)s)" for name in _OF_JOB},
    "transition_log": "SELECT * FROM detent.transition_log WHERE job_id IS NOT NULL AND job_id = ANY (%(ids)s)",
    "lane": "SELECT * FROM detent.lane WHERE id = ANY (%(lanes)s)",
    "ready": f"""
        SELECT * FROM detent.ready
         WHERE {_KEY} > (%(lane)s, %(at)s, %(job)s) ORDER BY lane_id, ready_at, job_id LIMIT %(rows)s
    """,
}
_PLACES_SQLITE = {
    "job": "SELECT * FROM detent_job WHERE id IN (SELECT value FROM json_each(:ids))",
    **{name: f"SELECT * FROM detent_{name} WHERE job_id IN (SELECT value FROM json_each(:ids))" for name in _OF_JOB},
    "transition_log": """
        SELECT * FROM detent_transition_log WHERE job_id IS NOT NULL AND job_id IN (SELECT value FROM json_each(:ids))
    """,
    "lane": "SELECT * FROM detent_lane WHERE id IN (SELECT value FROM json_each(:lanes))",
    "ready": f"""
        SELECT * FROM detent_ready
         WHERE {_KEY} > (:lane, :at, :job) ORDER BY lane_id, ready_at, job_id LIMIT :rows
    """,
}

_SLOTS_POSTGRES = {
    "worker": "SELECT * FROM detent.worker",
    "job": "SELECT * FROM detent.job WHERE id = ANY (%(ids)s)",
    "execution": "SELECT * FROM detent.execution WHERE job_id = ANY (%(ids)s)",
    "limit_slot": """
        SELECT * FROM detent.limit_slot
         WHERE (limit_key, job_id) > (%(key)s, %(job)s) ORDER BY limit_key, job_id LIMIT %(rows)s
    """,
}
_SLOTS_SQLITE = {
    "worker": "SELECT * FROM detent_worker",
    "job": "SELECT * FROM detent_job WHERE id IN (SELECT value FROM json_each(:ids))",
    "execution": "SELECT * FROM detent_execution WHERE job_id IN (SELECT value FROM json_each(:ids))",
    "limit_slot": """
        SELECT * FROM detent_limit_slot
         WHERE (limit_key, job_id) > (:key, :job) ORDER BY limit_key, job_id LIMIT :rows
    """,
}

_OF_RUN = ("target", "batch_action", "mismatch")
_RUN_POSTGRES = {
    "batch_run": "SELECT * FROM detent.batch_run WHERE id = %(run)s",
    **{name: f"SELECT * FROM detent.{name} WHERE run_id = %(run)s" for name in _OF_RUN},
    "transition_log": """
        SELECT * FROM detent.transition_log WHERE job_id IS NULL AND entity = 'batch_run' AND entity_id = %(run)s::text
    """,
}
_RUN_SQLITE = {
    "batch_run": "SELECT * FROM detent_batch_run WHERE id = :run",
    **{name: f"SELECT * FROM detent_{name} WHERE run_id = :run" for name in _OF_RUN},
    "transition_log": """
        SELECT * FROM detent_transition_log
         WHERE job_id IS NULL AND entity = 'batch_run' AND entity_id = CAST(:run AS TEXT)
    """,
}


@functools.cache
def of_jobs(dialect: Dialect, sql: str) -> str:
    """The invariant for the jobs with ids from `low` to `high`. Refuses (KeyError) a table that is not kept by job."""
    return _narrowed(sql, _JOBS_POSTGRES if dialect == "postgres" else _JOBS_SQLITE, dialect)


@functools.cache
def of_run(dialect: Dialect, sql: str) -> str:
    """The invariant for the batch run `run`."""
    return _narrowed(sql, _RUN_POSTGRES if dialect == "postgres" else _RUN_SQLITE, dialect)


@functools.cache
def of_places(dialect: Dialect, sql: str) -> str:
    """The invariant for the first `rows` rows of `ready` after (`lane`, `at`, `job`), with the jobs `ids` and the lanes
    `lanes` that they name."""
    return _narrowed(sql, _PLACES_POSTGRES if dialect == "postgres" else _PLACES_SQLITE, dialect)


@functools.cache
def of_slots(dialect: Dialect, sql: str) -> str:
    """Narrow an invariant to the first `rows` slots of limits after (`key`, `job`), with the jobs `ids` that they
    name."""
    return _narrowed(sql, _SLOTS_POSTGRES if dialect == "postgres" else _SLOTS_SQLITE, dialect)


def _narrowed(sql: str, tables: dict[str, str], dialect: Dialect) -> str:
    # Where a statement has parameters, psycopg takes a bare percent sign for one.
    text = sql.replace("%", "%%") if dialect == "postgres" else sql
    body = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return _TABLE.sub(lambda match: f"({tables[match[1]]})", body)
