"""Repair on PostgreSQL, in one transaction on a connection of the owner of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg

from detent.errors import DatabaseError
from detent.model.records import Violation
from detent.store.installed import is_newer
from detent.store.invariants import can_go_on, load, unchecked, watched
from detent.store.invariants.postgres_definitions import postgres_constraints, postgres_indexes
from detent.store.postgres.differences import changed_views
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.driver.failures import translated
from detent.store.postgres.installed import guard_functions, triggers
from detent.store.postgres.integrity import damaged_pages
from detent.store.postgres.schema import installed
from detent.store.repair.job_projection import Key
from detent.store.repair.statements import RepairActions, Statements

__all__ = ["PostgresRepair", "changed_definitions", "violations"]

LOCK_MILLISECONDS_MAX = 500

_JOBS = """
SELECT id, tenant, task, queue, priority, due_at, expires_at, correlation_id, attempts_max, state, attempt, spared,
       ended, error, finished_at, lease_id, leased_at, started_at, committed_at, limit_key
  FROM detent.job WHERE id = ANY (%s) ORDER BY id
"""
_EXECUTIONS = """
SELECT job_id, attempt, outcome, next_state, next_due_at, counted, committed_at, coalesce(done_at, aborted_at), error
  FROM detent.execution WHERE job_id = ANY (%s) ORDER BY job_id, attempt
"""
_LINES = """
SELECT job_id, n, attempt, to_state, trigger, at
  FROM detent.transition_log
 WHERE job_id = ANY (%s) AND entity = 'job' AND trigger NOT IN ('request_cancel', 'move', 'repair') ORDER BY job_id, n
"""
# A waiting row with another priority than its lane's stands in no lane.
_QUEUED = """
SELECT q.job_id, q.place, q.at, q.expires_at, q.holds_key, l.queue, l.task, l.tenant, l.limit_key,
       CASE WHEN q.priority IS NULL OR q.priority = l.priority THEN l.priority END
  FROM (SELECT job_id, 'ready' AS place, ready_at AS at, expires_at, holds_key, lane_id, NULL::smallint AS priority
          FROM detent.ready
        UNION ALL
        SELECT job_id, 'waiting', due_at, expires_at, holds_key, lane_id, priority FROM detent.waiting) q
  LEFT JOIN detent.lane l ON l.id = q.lane_id
 WHERE q.job_id = ANY (%s) ORDER BY q.job_id
"""
_DEAD = "SELECT job_id, tenant, queue, task FROM detent.dead WHERE job_id = ANY (%s)"
_KEYS = "SELECT job_id, tenant, key FROM detent.job_key WHERE until_claim AND job_id = ANY (%s) ORDER BY tenant, key"
_LEASED = """
SELECT j.id FROM detent.job j JOIN detent.lease l ON l.id = j.lease_id AND j.id = ANY (l.job_ids) WHERE j.id = ANY (%s)
"""
# In the order in which every verb takes its locks.
_LOCK_TABLES = """
LOCK TABLE detent.ready, detent.waiting, detent.job, detent.lease, detent.execution IN SHARE ROW EXCLUSIVE MODE
"""
_LOG = """
INSERT INTO detent.transition_log
  (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, metadata,
   correlation_id, at)
VALUES (%s, %s, %s, %s, %s, %s, %s, 'repair', %s, %s, %s, %s, %s)
"""
_SET_JOB = """
UPDATE detent.job
   SET state = %(state)s, attempt = %(attempt)s, ended = %(ended)s, spared = %(spared)s, due_at = %(due_at)s,
       finished_at = %(finished_at)s, committed_at = %(committed_at)s, error = %(error)s, lease_id = %(lease_id)s,
       leased_at = %(leased_at)s
 WHERE id = %(id)s AND state = %(found)s
"""
_NEW_GROUP = "INSERT INTO detent.lane_group (queue, task) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_NEW_LANE = "SELECT detent.lane_of(%s, %s, %s, %s::smallint, %s)"
_LANE = """
(SELECT id FROM detent.lane
  WHERE queue = %s AND task = %s AND tenant = %s AND priority = %s AND limit_key = %s ORDER BY id LIMIT 1)
"""
_TO_READY = f"""
INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at) VALUES ({_LANE}, %s, %s, %s, %s)
"""
_TO_WAITING = f"""
INSERT INTO detent.waiting (lane_id, due_at, job_id, holds_key, expires_at, priority)
VALUES ({_LANE}, %s, %s, %s, %s, %s)
"""
_ADD_DEAD = """
INSERT INTO detent.dead (job_id, tenant, queue, task, reason, quarantined_at) VALUES (%s, %s, %s, %s, %s, %s)
"""
_NAME_IN_LEASE = """
UPDATE detent.lease SET job_ids = job_ids || %(job)s::bigint
 WHERE id = (SELECT lease_id FROM detent.job WHERE id = %(job)s)
"""
_NEW_LEASE = """
INSERT INTO detent.lease (id, worker, leased_at, expires_at, job_ids)
SELECT lease_id, '', leased_at, %(now)s - interval '1 microsecond', ARRAY[id] FROM detent.job WHERE id = %(job)s
"""
_COUNT_FINISHED = """
INSERT INTO detent.finished_delta (tenant, queue, task, state, jobs)
SELECT f.tenant, f.queue, f.task, f.state, sum(f.there) - sum(f.counted)
  FROM (SELECT tenant, queue, task, state, 0 AS counted, count(*) AS there FROM detent.job
         WHERE finished_at IS NOT NULL GROUP BY tenant, queue, task, state
        UNION ALL
        SELECT tenant, queue, task, state, jobs, 0 FROM detent.job_counts
         WHERE state <> 'pending' AND state <> 'running') f
 GROUP BY f.tenant, f.queue, f.task, f.state HAVING sum(f.counted) <> sum(f.there)
"""
_DATE_JOBS = """
INSERT INTO detent.job_span AS s (created_at, block, first_id, last_id)
SELECT j.created_at, j.id >> 10, min(j.id), max(j.id) FROM detent.job j
 WHERE NOT EXISTS (SELECT 1 FROM detent.job_span k
                    WHERE k.created_at = j.created_at AND k.block = j.id >> 10
                      AND j.id BETWEEN k.first_id AND k.last_id)
 GROUP BY j.created_at, j.id >> 10
ON CONFLICT (created_at, block, first_id) DO UPDATE SET last_id = greatest(s.last_id, excluded.last_id)
"""
_RECOUNT = """
UPDATE detent.batch_run b
   SET (total, previewed, preview_failed, unchanged, queued, applying, applied, failed,
        rolled_back, reverting, revert_failed, conflicts) = (
       SELECT count(*), count(*) FILTER (WHERE g.changed IS NOT NULL),
              count(*) FILTER (WHERE g.preview_error IS NOT NULL), count(*) FILTER (WHERE NOT g.changed),
              count(*) FILTER (WHERE g.state = 'queued'), count(*) FILTER (WHERE g.state = 'applying'),
              count(*) FILTER (WHERE g.state = 'applied'), count(*) FILTER (WHERE g.state = 'failed'),
              count(*) FILTER (WHERE g.state = 'rolled_back'),
              count(*) FILTER (WHERE g.revert_state = 'reverting'),
              count(*) FILTER (WHERE g.revert_state = 'failed'),
              count(*) FILTER (WHERE g.conflict IS NOT NULL)
         FROM detent.target g WHERE g.run_id = b.id),
       outstanding = (SELECT count(*) FROM detent.batch_action a WHERE a.run_id = b.id AND a.done_at IS NULL),
       mismatches = (SELECT count(*) FROM detent.mismatch m WHERE m.run_id = b.id AND m.resolved_at IS NULL)
 WHERE id = %s
"""

_GO_ON = {
    "id_seq": b"""
        SELECT setval('detent.id_seq', greatest((SELECT max(id) FROM detent.job), (SELECT max(id) FROM detent.lease)))
    """,
    "lane_id_seq": b"SELECT setval('detent.lane_id_seq', (SELECT max(id & 4294967295) FROM detent.lane))",
    "transition_log_n_seq": b"SELECT setval('detent.transition_log_n_seq', (SELECT max(n) FROM detent.transition_log))",
    "horizon_n_seq": b"SELECT setval('detent.horizon_n_seq', (SELECT max(n) FROM detent.horizon))",
    "alert_notice_n_seq": b"SELECT setval('detent.alert_notice_n_seq', (SELECT max(n) FROM detent.alert_notice))",
}

_STATEMENTS = Statements(
    jobs=_JOBS,
    executions=_EXECUTIONS,
    lines=_LINES,
    queued=_QUEUED,
    dead=_DEAD,
    keys=_KEYS,
    leased=_LEASED,
    jobs_of_lines="SELECT n, job_id FROM detent.transition_log WHERE n = ANY (%s) AND job_id IS NOT NULL",
    log=_LOG,
    set_job=_SET_JOB,
    new_group=_NEW_GROUP,
    new_lane=_NEW_LANE,
    to_ready=_TO_READY,
    to_waiting=_TO_WAITING,
    not_ready="DELETE FROM detent.ready WHERE job_id = %s",
    not_waiting="DELETE FROM detent.waiting WHERE job_id = %s",
    add_dead=_ADD_DEAD,
    remove_dead="DELETE FROM detent.dead WHERE job_id = %s",
    name_in_lease=_NAME_IN_LEASE,
    new_lease=_NEW_LEASE,
    drop_key="DELETE FROM detent.job_key WHERE job_id = %s AND tenant = %s AND key = %s AND until_claim",
    free_slot="DELETE FROM detent.limit_slot WHERE limit_key = %s AND job_id = %s",
    recount=_RECOUNT,
    count_finished=_COUNT_FINISHED,
    list_jobs=(
        _DATE_JOBS,
        """
        DELETE FROM detent.unsuccessful WHERE NOT EXISTS (
          SELECT 1 FROM detent.job j WHERE j.id = detent.unsuccessful.job_id AND j.state = detent.unsuccessful.state)
        """,
        """
        INSERT INTO detent.unsuccessful (state, job_id)
        SELECT j.state, j.id FROM detent.job j WHERE j.state IN ('failed', 'cancelled') AND NOT EXISTS (
          SELECT 1 FROM detent.unsuccessful u WHERE u.state = j.state AND u.job_id = j.id)
        """,
    ),
    new_id="SELECT nextval('detent.id_seq')",
)


def violations(connection: Connection, watch: Callable[[int], None] | None = None) -> list[Violation]:
    """Return every row that breaks an invariant, in the order of the names of the invariants."""
    found: list[Violation] = []
    schema = not is_newer(installed(connection))
    for invariant in watched(load("postgres", schema=schema), watch):
        try:
            with connection.transaction():
                rows = connection.execute(invariant.sql.encode()).fetchall()
        except psycopg.Error as error:
            known = translated(error, "this database")
            if not isinstance(known, DatabaseError) or not can_go_on(known):
                raise
            found.append(unchecked(invariant.name, known))
        else:
            found += [Violation(invariant.name, *(str(part) for part in row)) for row in rows]
    found += [*(changed_definitions(connection) if schema else ()), *damaged_pages(connection)]
    return sorted(found, key=lambda one: one.invariant)


def changed_definitions(connection: Connection) -> Iterator[Violation]:
    """Yield the views that are not those of this release."""
    for name in changed_views(connection):
        yield Violation("definitions_are_in_place", "view", name, "its definition was changed")


class PostgresRepair(RepairActions):
    """See `apply.RepairDatabase`. The caller owns the transaction."""

    def __init__(self, connection: Connection) -> None:
        row = connection.execute("SELECT detent.clock()").fetchone()
        assert row is not None
        super().__init__(_STATEMENTS, row[0])
        self._db = connection

    def _execute(self, sql: str, params: Any = ()) -> tuple[list[tuple[Any, ...]], int]:
        cursor = self._db.execute(sql.encode(), params)
        return cursor.fetchall() if cursor.description else [], cursor.rowcount

    def _listed(self, ids: Sequence[int]) -> list[int]:
        return list(ids)

    # -- looking -----------------------------------------------------------------------------------------------

    def violations(self) -> list[Violation]:
        return violations(self._db)

    def keys_named(self, names: Sequence[str]) -> list[Key]:
        sql = "SELECT job_id, tenant, key FROM detent.job_key WHERE until_claim AND tenant || '/' || key = ANY (%s)"
        return [Key._make(row) for row in self._db.execute(sql, (list(names),)).fetchall()]

    def owner_must(self, kind: str, name: str) -> str | None:
        if kind == "function" and name not in guard_functions():
            return "run `detent migrate`, which installs the functions of this release"
        if kind in ("trigger", "function", "sequence"):
            return None
        if kind == "table":
            return f"ALTER TABLE detent.{name} SET LOGGED;"
        if name not in postgres_constraints():
            # An index of no migration was made by somebody else.
            again = f" {postgres_indexes()[name]}" if name in postgres_indexes() else ""
            return f"DROP INDEX IF EXISTS detent.{name};{again}"
        wanted = postgres_constraints()[name]
        if kind == "index":
            return f"DROP INDEX IF EXISTS detent.{name}; {wanted.ddl}"
        return f"ALTER TABLE detent.{wanted.table} DROP CONSTRAINT IF EXISTS {name}; {wanted.ddl}"

    # -- doing -------------------------------------------------------------------------------------------------

    def lock_out_writers(self) -> None:
        # Everybody else's writes queue up behind this lock: so it gives up soon and is asked for again.
        self._db.execute(f"SET LOCAL lock_timeout = '{LOCK_MILLISECONDS_MAX}ms'".encode())
        self._db.execute(_LOCK_TABLES)

    def undo_if_refused(self, work: Callable[[], None]) -> str | None:
        try:
            with self._db.transaction():
                work()
        except psycopg.OperationalError:
            raise
        except psycopg.DatabaseError as error:
            return error.diag.message_primary or str(error)
        return None

    def restore(self, kind: str, name: str) -> None:
        if kind == "sequence":
            self._db.execute(_GO_ON[name])
            return
        if kind == "function":
            self._db.execute(guard_functions()[name].ddl.encode())
            return
        trigger = triggers()[name]
        self._db.execute(f"DROP TRIGGER IF EXISTS {trigger.name} ON detent.{trigger.table}".encode())
        self._db.execute(trigger.ddl.encode())
