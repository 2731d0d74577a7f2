"""Repair on PostgreSQL, inside one transaction of an owner's connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg

from detent.model.records import Violation
from detent.store.invariants.postgres import violations
from detent.store.invariants.postgres_definitions import postgres_constraints, postgres_indexes
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.installed_parts import guard_functions, triggers
from detent.store.repair.database import RepairDatabase

__all__ = ["PostgresRepair"]

LOCK_MILLISECONDS_MAX = 500

# In the order in which every verb takes its locks.
_LOCK_OUT_WRITERS = """
LOCK TABLE detent.ready, detent.waiting, detent.job, detent.lease, detent.execution, detent.finished_count,
           detent.finished_total, detent.transition_hour, detent.transition_rate IN SHARE ROW EXCLUSIVE MODE
"""
_ADD_TO_LEASE = """
UPDATE detent.lease SET job_ids = job_ids || %(job)s::bigint
 WHERE id = (SELECT lease_id FROM detent.job WHERE id = %(job)s)
"""
_NEW_LEASE = """
INSERT INTO detent.lease (id, worker, leased_at, expires_at, job_ids)
SELECT lease_id, '', leased_at, %(now)s - interval '1 microsecond', ARRAY[id] FROM detent.job WHERE id = %(job)s
"""
_CONTINUE = {
    "id_seq": b"""
        SELECT setval('detent.id_seq', greatest((SELECT max(id) FROM detent.job), (SELECT max(id) FROM detent.lease)))
    """,
    "lane_id_seq": b"SELECT setval('detent.lane_id_seq', (SELECT max(id & 4294967295) FROM detent.lane))",
    "transition_log_n_seq": b"SELECT setval('detent.transition_log_n_seq', (SELECT max(n) FROM detent.transition_log))",
    "horizon_n_seq": b"SELECT setval('detent.horizon_n_seq', (SELECT max(n) FROM detent.horizon))",
    "alert_notice_n_seq": b"SELECT setval('detent.alert_notice_n_seq', (SELECT max(n) FROM detent.alert_notice))",
}


class PostgresRepair(RepairDatabase):
    """A PostgreSQL database under repair. The transaction is the caller's."""

    def __init__(self, connection: Connection) -> None:
        row = connection.execute("SELECT detent.clock()").fetchone()
        assert row is not None
        super().__init__(row[0])
        self._db = connection

    def _execute(self, sql: str, params: Mapping[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        cursor = self._db.execute(sql.encode(), params)
        return cursor.fetchall() if cursor.description else [], cursor.rowcount

    def _listed(self, values: Sequence[int | str]) -> list[int | str]:
        return list(values)

    def _new_id(self) -> int:
        ((new,),) = self._db.execute("SELECT nextval('detent.id_seq')").fetchall()
        return int(new)

    def _make_lane(self, lane: tuple[str, str, str, int, str, int]) -> None:
        group = (lane[0], lane[1], lane[5])
        self._db.execute(
            "INSERT INTO detent.lane_group (queue, task, version) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", group
        )
        self._db.execute("SELECT detent.lane_of(%s, %s, %s, %s::smallint, %s, %s)", lane)

    def lease(self, job_id: int) -> None:
        if not self._execute(_ADD_TO_LEASE, {"job": job_id})[1]:
            self._execute(_NEW_LEASE, {"job": job_id, "now": self._now})

    def _count_graph(self, graph_id: int) -> None:
        self._db.execute("SELECT detent.graph_count_anew(%s)", (graph_id,))

    def violations(self) -> list[Violation]:
        return violations(self._db)

    def owner_must(self, kind: str, name: str) -> str | None:
        if kind == "function" and name not in guard_functions():
            return "run `detent migrate`, which installs the functions of this release"
        if kind in ("trigger", "function", "sequence"):
            return None
        if kind == "table":
            return f"ALTER TABLE detent.{name} SET LOGGED;"
        if name not in postgres_constraints():
            # No migration makes this index.
            again = f" {postgres_indexes()[name]}" if name in postgres_indexes() else ""
            return f"DROP INDEX IF EXISTS detent.{name};{again}"
        wanted = postgres_constraints()[name]
        if kind == "index":
            return f"DROP INDEX IF EXISTS detent.{name}; {wanted.ddl}"
        return f"ALTER TABLE detent.{wanted.table} DROP CONSTRAINT IF EXISTS {name}; {wanted.ddl}"

    def lock_out_writers(self) -> None:
        # The writes of all other transactions wait behind this lock, so it times out soon and is requested again.
        self._db.execute(f"SET LOCAL lock_timeout = '{LOCK_MILLISECONDS_MAX}ms'".encode())
        self._db.execute(_LOCK_OUT_WRITERS)

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
            self._db.execute(_CONTINUE[name])
            return
        if kind == "function":
            self._db.execute(guard_functions()[name].ddl.encode())
            return
        trigger = triggers()[name]
        self._db.execute(f"DROP TRIGGER IF EXISTS {trigger.name} ON detent.{trigger.table}".encode())
        self._db.execute(trigger.ddl.encode())
