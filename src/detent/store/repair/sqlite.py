"""Repair on SQLite, inside one write transaction."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from detent.model.records import Violation
from detent.store.installed_release import is_newer
from detent.store.invariants import can_go_on
from detent.store.invariants.sqlite import violations
from detent.store.invariants.sqlite_translation import for_sqlite
from detent.store.repair.database import RepairDatabase
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.driver.failures import translated
from detent.store.sqlite.installed_parts import expected_schema, installed
from detent.store.sqlite.verb_base import NEW_GROUP, NEW_LANE

__all__ = ["SqliteRepair"]

_ADD_TO_LEASE = """
UPDATE detent_lease
   SET job_ids = json_insert(CASE WHEN json_valid(job_ids) THEN job_ids ELSE '[]' END, '$[#]', :job)
 WHERE id = (SELECT lease_id FROM detent_job WHERE id = :job)
"""
_NEW_LEASE = """
INSERT INTO detent_lease (id, worker, leased_at, expires_at, job_ids)
SELECT lease_id, '', leased_at, :now - 1, json_array(id) FROM detent_job WHERE id = :job
"""
_CONTINUE_IDS = """
INSERT INTO detent_ids (next)
SELECT 1 + max(coalesce((SELECT max(id) FROM detent_job), 0), coalesce((SELECT max(id) FROM detent_lease), 0))
"""
# What follows from each is done by the triggers of graphs. `blocked` comes before `met`, which takes from it.
_COUNT_GRAPH = (
    """
    UPDATE detent_graph_node
       SET blocked = (SELECT count(*) FROM detent_job_after a WHERE a.job_id = detent_graph_node.job_id AND NOT a.met)
     WHERE graph_id = :graph_id
    """,
    """
    UPDATE detent_graph
       SET (succeeded, failed) = (
           SELECT count(CASE WHEN n.outcome = 'succeeded' THEN 1 END), count(CASE WHEN n.outcome = 'failed' THEN 1 END)
             FROM detent_graph_node n WHERE n.graph_id = :graph_id)
     WHERE job_id = :graph_id
    """,
    """
    UPDATE detent_job_after SET met = 1
     WHERE NOT met AND job_id IN (SELECT n.job_id FROM detent_graph_node n WHERE n.graph_id = :graph_id)
       AND EXISTS (SELECT 1 FROM detent_job j
                    WHERE j.id = detent_job_after.after_id
                      AND (j.state = 'succeeded'
                           OR (detent_job_after.kind = 'end' AND j.state IN ('failed', 'cancelled'))))
    """,
    """
    UPDATE detent_graph_node
       SET outcome = (SELECT CASE WHEN j.state = 'succeeded' THEN 'succeeded'
                                  WHEN j.state IN ('failed', 'cancelled') THEN 'failed' END
                        FROM detent_job j WHERE j.id = detent_graph_node.job_id)
     WHERE graph_id = :graph_id
    """,
)
_for_sqlite = functools.cache(for_sqlite)


class SqliteRepair(RepairDatabase):
    """A SQLite file under repair. The transaction is the caller's."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        super().__init__(now)
        self._db = connection

    def _execute(self, sql: str, params: Mapping[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        cursor = self._db.execute(_for_sqlite(sql), params or {})
        # The rows first: a change with RETURNING is counted when all of them are fetched.
        return cursor.fetchall(), cursor.rowcount

    def _count_graph(self, graph_id: int) -> None:
        for statement in _COUNT_GRAPH:
            self._db.execute(statement, {"graph_id": graph_id})

    def _listed(self, values: Sequence[int | str]) -> str:
        return json.dumps(list(values))

    def _new_id(self) -> int:
        ((new,),) = self._db.execute("UPDATE detent_ids SET next = next + 1 RETURNING next - 1").fetchall()
        return int(new)

    def _make_lane(self, lane: tuple[str, str, str, int, str, int]) -> None:
        self._db.execute(NEW_GROUP, lane)
        self._db.execute(NEW_LANE, lane).fetchall()

    def lease(self, job_id: int) -> None:
        if not self._execute(_ADD_TO_LEASE, {"job": job_id})[1]:
            self._execute(_NEW_LEASE, {"job": job_id, "now": self._now})

    def violations(self) -> list[Violation]:
        schema = not is_newer(installed(self._db))
        return violations(SqliteExecutor(self._db), self._now, schema=schema)

    def owner_must(self, kind: str, name: str) -> str | None:
        match kind:
            case "trigger" | "sequence":
                return None
            case "index":
                return f"DROP INDEX IF EXISTS {name}; {expected_schema()[kind, name]};"
            case _:
                return f"make {name} anew as the migrations define it, and copy its rows"

    def lock_out_writers(self) -> None:
        """Do nothing: in a write transaction of SQLite there is no other writer."""

    def undo_if_refused(self, work: Callable[[], None]) -> str | None:
        self._db.execute("SAVEPOINT detent_repair")
        try:
            work()
        except sqlite3.DatabaseError as error:
            if not can_go_on(translated(error, "this file")):
                raise
            self._db.execute("ROLLBACK TO detent_repair")
            return str(error)
        finally:
            self._db.execute("RELEASE detent_repair")
        return None

    def restore(self, kind: str, name: str) -> None:
        if kind == "sequence":
            self._db.execute("DELETE FROM detent_ids")
            self._db.execute(_CONTINUE_IDS)
            return
        self._db.execute(f"DROP TRIGGER IF EXISTS {name}")
        self._db.execute(expected_schema()[kind, name])
