"""Entities and the record on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from detent.errors import DetentError, NotFound, TransitionRace
from detent.lifecycle.definition import Lifecycle
from detent.model.clock import from_micros, to_micros
from detent.model.follow_records import ChangePlace, JobMark
from detent.model.record_cursor import RecordCursor
from detent.model.records import Moved, RecordFeedPage, RecordPage, RecordPlace, TransitionRow
from detent.model.service_records import LinesPruned
from detent.store.entities.guards import entity_guards, undeclared_states
from detent.store.entities.record_feed import check_feed_limit, check_known, feed_page
from detent.store.entities.rules import decide, refuse_older, refuse_undeclared
from detent.store.jobs.filters import LOOKS_MAX, PORTION, RecordSearch, record_bounds, record_page
from detent.store.jobs.sqlite_retention import HORIZON
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.installed_parts import statements
from detent.store.sqlite.verb_base import VerbBase, fields_named, ids_json

__all__ = ["SqliteEntities", "attach", "attached_versions"]

_COUNTS = "SELECT state, count(*) FROM (SELECT {state} AS state FROM {table} LIMIT ?) GROUP BY state ORDER BY state"
_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND lower(name) = lower(?)"
_VERSION_OF = "SELECT version FROM detent_lifecycle WHERE name = ?"
_ATTACHED = """
INSERT INTO detent_lifecycle AS l (name, version, table_name, attached_at) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE
  SET version = excluded.version, table_name = excluded.table_name, attached_at = excluded.attached_at
  WHERE (l.version, l.table_name) <> (excluded.version, excluded.table_name)
"""
_LOG = """
INSERT INTO detent_transition_log
  (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, forced, at)
SELECT :entity, :id, :from, :to, :trigger, :actor, :reason, :metadata, :forced,
       max(:now, coalesce((SELECT max(at) FROM detent_transition_log
                            WHERE entity = :entity AND entity_id = :id AND job_id IS NULL), 0))
"""
_FIELDS = TransitionRow.__struct_fields__
_LINE = f"SELECT {', '.join(_FIELDS)} FROM detent_transition"
_OF_TARGET = f"""
SELECT {", ".join(_FIELDS)}
  FROM detent_target_transition WHERE run_id = ? AND target_n = ? ORDER BY attempt, rank, n
"""
# An index finds the lines of a job and of its executions by the number of the job.
_OF_JOB = f"{_LINE} WHERE job_id = :job AND entity = :entity AND entity_id = :id ORDER BY attempt, rank, n"
_OF_ENTITY = f"""
SELECT {", ".join("90" if name == "rank" else name for name in _FIELDS)} FROM detent_transition_log
 WHERE job_id IS NULL AND entity = :entity AND entity_id = :id ORDER BY attempt, n
"""
_AFTER = "(at, n) < (:after_at, :after_n)"
_LINES = "SELECT n, at FROM detent_transition_log WHERE {which} ORDER BY {order} LIMIT :step"
_LINES_OF_JOB = _LINES.format(which=f"job_id = :job_id AND {_AFTER}", order="n DESC")
_LINES_OF_ENTITY = _LINES.format(
    which=f"job_id IS NULL AND entity = :entity AND entity_id = :entity_id AND {_AFTER}", order="n DESC"
)
_LINES_BY_ACTOR = _LINES.format(which=f"actor = :actor AND {_AFTER} AND at >= :since", order="at DESC, n DESC")
_LINES_BY_TIME = _LINES.format(which=f"{_AFTER} AND at >= :since", order="at DESC, n DESC")
_LINES_FITTING = f"""
SELECT {", ".join("0" if name == "rank" else "l." + name for name in _FIELDS)}
  FROM json_each(:ns) asked CROSS JOIN detent_transition_log l ON l.n = asked.value
 WHERE l.at >= :since AND (:actor IS NULL OR l.actor = :actor) AND (:entity IS NULL OR l.entity = :entity)
   AND (:entity_id IS NULL OR l.entity_id = :entity_id)
 ORDER BY l.at DESC, l.n DESC LIMIT :limit
"""
_TOP = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'detent_transition_log'), 0)"
_FEED = f"""
SELECT tenant, {", ".join("0" if name == "rank" else name for name in _FIELDS)}
  FROM detent_transition_log WHERE n > ? AND n <= ? ORDER BY n LIMIT ?
"""
_RETENTION_PASSED = """
SELECT (SELECT max(before) FROM detent_horizon)
       > coalesce((SELECT at FROM detent_transition_log WHERE n <= ? ORDER BY n DESC LIMIT 1), 0)
"""
_MARKS = """
SELECT j.id, j.tenant, j.state, j.attempt,
       CASE WHEN j.state = 'running'
            THEN CASE WHEN j.committed_at IS NOT NULL THEN 30 WHEN j.started_at IS NOT NULL THEN 20 ELSE 11 END
            WHEN j.attempt = 0 THEN 0 ELSE 51 END,
       coalesce((SELECT n FROM detent_transition_log WHERE job_id = j.id ORDER BY n DESC LIMIT 1), 0),
       coalesce((SELECT seq FROM detent_event WHERE job_id = j.id ORDER BY seq DESC LIMIT 1), 0)
  FROM json_each(?) asked CROSS JOIN detent_job j ON j.id = asked.value
"""
_CHANGES = f"""{_LINE}
 WHERE job_id = :job AND attempt >= :attempt
   AND (n > :n OR (n = 0 AND (attempt, rank) > (:attempt, :rank)))
 ORDER BY attempt, rank, n LIMIT :limit
"""
_ENTITY_CHANGES = f"""
SELECT {", ".join("0" if name == "rank" else name for name in _FIELDS)}
  FROM detent_transition_log
 WHERE job_id IS NULL AND entity = ? AND entity_id = ? AND n > ? ORDER BY n LIMIT ?
"""
_HORIZONS_GO = """
DELETE FROM detent_horizon
 WHERE n IN (SELECT n FROM detent_horizon
              WHERE before < :before AND at < :before AND before < (SELECT max(before) FROM detent_horizon)
              ORDER BY before LIMIT :limit)
"""
_LOOK = "SELECT n, at < ?, job_id IS NULL FROM detent_transition_log WHERE n > ? ORDER BY n LIMIT ?"
_LINES_GO = """
DELETE FROM detent_transition_log
 WHERE n IN (SELECT value FROM json_each(:lines))
   AND CASE entity
         WHEN 'batch_run' THEN NOT EXISTS (SELECT 1 FROM detent_batch_run WHERE id = CAST(entity_id AS INTEGER))
         WHEN 'pipeline_run' THEN NOT EXISTS (SELECT 1 FROM detent_pipeline_run WHERE id = CAST(entity_id AS INTEGER))
         ELSE EXISTS (SELECT 1 FROM detent_transition_log l
                       WHERE l.job_id IS NULL AND l.entity = detent_transition_log.entity
                         AND l.entity_id = detent_transition_log.entity_id AND l.n > detent_transition_log.n
                         AND l.at < :before)
       END
"""


def attach(
    connection: sqlite3.Connection,
    now: int,
    database: str,
    lifecycle: Lifecycle,
    table: str,
    id_column: str,
    state_column: str,
) -> None:
    """Install the guards of a user's table in the transaction of a connection."""
    if not connection.execute(_HAS_TABLE, (table,)).fetchone():
        raise NotFound("table", table)
    guards = entity_guards("sqlite", lifecycle, table, id_column, state_column)
    undeclared = undeclared_states(lifecycle, table, id_column, state_column)
    refuse_undeclared(database, lifecycle, connection.execute(undeclared).fetchall())
    row = connection.execute(_VERSION_OF, (lifecycle.name,)).fetchone()
    refuse_older(database, lifecycle, row[0] if row else None)
    connection.execute(_ATTACHED, (lifecycle.name, lifecycle.version, table, now))
    for statement in statements(guards):
        connection.execute(statement)


def attached_versions(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the version of each attached lifecycle."""
    if not connection.execute(_HAS_TABLE, ("detent_lifecycle",)).fetchone():
        return {}
    return dict(connection.execute("SELECT name, version FROM detent_lifecycle").fetchall())


class SqliteEntities(VerbBase):
    """The verbs of entities and of the record."""

    def entity_move(
        self,
        lifecycle: Lifecycle,
        table: str,
        id_column: str,
        state_column: str,
        entity_id: str,
        trigger: str,
        actor: str,
        reason: str | None = None,
        metadata: str | None = None,
    ) -> Moved | DetentError:
        """Write the log row, then move the row. Statements are made of quoted names; every value is a parameter."""
        names = {"table": _quoted(table), "id": _quoted(id_column), "state": _quoted(state_column)}
        found = self._db.rows("SELECT {state} FROM {table} WHERE {id} = ?".format(**names), (entity_id,))
        decided = decide(self._database, lifecycle, entity_id, [str(row[0]) for row in found], trigger)
        if not isinstance(decided, tuple):
            return decided
        state, to_state = decided
        line = {"entity": lifecycle.name, "id": entity_id, "from": state, "to": to_state, "trigger": trigger}
        told = {
            "actor": actor,
            "reason": reason,
            "metadata": metadata,
            "forced": trigger == "force",
            "now": self._now(),
        }
        self._db.change(_LOG, line | told)
        move = "UPDATE {table} SET {state} = ? WHERE {id} = ? AND {state} = ?".format(**names)
        if self._db.change(move, (to_state, entity_id, state)) != 1:
            raise TransitionRace(lifecycle.name, entity_id, state, "another state, or more than one row of this id")
        return Moved(entity_id, to_state, True)

    def entity_counts(self, table: str, state_column: str, rows_max: int) -> dict[str, int]:
        names = {"table": _quoted(table), "state": _quoted(state_column)}
        found = self._db.rows(_COUNTS.format(**names), (rows_max,))
        return {str(state): number for state, number in found}

    def transitions(self, entity: str, entity_id: str) -> list[TransitionRow]:
        return [TransitionRow(**fields_named(_FIELDS, row)) for row in self._lines(entity, entity_id)]

    def state_as_of(self, entity: str, entity_id: str, at: datetime) -> str | None:
        moment = to_micros(at, field="at")
        past = [row[3] for row in self._lines(entity, entity_id) if row[5] <= moment]
        return past[-1] if past else None

    def _lines(self, entity: str, entity_id: str) -> list[Row]:
        if entity == "target":
            run_id, _, n = entity_id.partition("/")
            is_one = all(part.isascii() and part.isdecimal() for part in (run_id, n))
            return self._db.rows(_OF_TARGET, (int(run_id), int(n))) if is_one else []
        if entity not in ("job", "execution"):
            return self._db.rows(_OF_ENTITY, {"entity": entity, "id": entity_id})
        number = entity_id.partition("/")[0]
        if not number.isascii() or not number.isdecimal():
            return []
        where = {"job": int(number), "entity": entity, "id": int(number) if entity == "job" else entity_id}
        return [(row[0], str(row[1]), *row[2:]) for row in self._db.rows(_OF_JOB, where)]

    def record_search(
        self, chosen: RecordSearch, after: RecordPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
    ) -> RecordPage:
        """Read in portions until the page is full."""
        since, place = record_bounds(chosen, after)
        asked: dict[str, Any] = {"actor": chosen.actor, "entity": chosen.entity, "entity_id": chosen.entity_id}
        asked |= {"since": to_micros(since, field="since"), "step": limit, "job_id": None}
        statement = _LINES_BY_TIME if chosen.actor is None else _LINES_BY_ACTOR
        number = chosen.entity_id or ""
        if chosen.entity == "job" and number.isascii() and number.isdecimal() and len(number) < 19:
            statement, asked["job_id"] = _LINES_OF_JOB, int(number)
        elif chosen.entity_id is not None:
            statement = _LINES_OF_ENTITY
        looked, found = 0, list[TransitionRow]()
        while True:
            at = {"after_at": to_micros(place.at, field="until"), "after_n": place.n}
            lines = self._db.rows(statement, asked | at)
            fits = asked | {"ns": ids_json(row[0] for row in lines), "limit": limit - len(found)}
            found += [TransitionRow(**fields_named(_FIELDS, row)) for row in self._db.rows(_LINES_FITTING, fits)]
            if len(found) >= limit or len(lines) < asked["step"]:
                return record_page(found, limit, None)
            looked += len(lines)
            place = RecordPlace(from_micros(lines[-1][1]), lines[-1][0])
            if looked >= looks:
                return record_page(found, limit, place)
            asked["step"] = max(limit, PORTION)

    def record_feed(self, after: str | None = None, limit: int = 100) -> RecordFeedPage:
        """Numbers are in the order of commit: there is one writer."""
        check_feed_limit(limit)
        ((top,),) = self._db.rows(_TOP, ())
        if after is None:
            return feed_page(RecordCursor.after(top), [], limit=limit, top=top, decided=top)
        cursor = RecordCursor.parse(after)
        check_known(cursor, top)
        seen = cursor.last_seen
        found = self._db.rows(_FEED, (seen, top, limit))
        lines = [(row[0], TransitionRow(**fields_named(_FIELDS, row[1:]))) for row in found]
        reached = lines[-1][1].n if len(lines) == limit else top
        is_missing = seen > 0 and reached - seen > len(lines)
        pruned = is_missing and bool(self._db.rows(_RETENTION_PASSED, (seen,))[0][0])
        return feed_page(cursor, lines, limit=limit, top=top, decided=top, pruned=pruned)

    def job_marks(self, ids: Sequence[int]) -> list[JobMark | None]:
        found = {row[0]: JobMark(*row) for row in self._db.rows(_MARKS, (ids_json(dict.fromkeys(ids)),))}
        return [found.get(job_id) for job_id in ids]

    def job_changes(self, job_id: int, after: ChangePlace, limit: int = 100) -> list[TransitionRow]:
        place = {"attempt": after.attempt, "rank": after.rank, "n": after.n}
        rows = self._db.rows(_CHANGES, place | {"job": job_id, "limit": limit})
        return [TransitionRow(**fields_named(_FIELDS, (row[0], str(row[1]), *row[2:]))) for row in rows]

    def entity_changes(self, entity: str, entity_id: str, after_n: int = 0, limit: int = 100) -> list[TransitionRow]:
        rows = self._db.rows(_ENTITY_CHANGES, (entity, entity_id, after_n, limit))
        return [TransitionRow(**fields_named(_FIELDS, row)) for row in rows]

    def log_prune(self, before: datetime, after: int, limit: int, actor: str) -> LinesPruned:
        """Record the horizon first: the guards let only older lines go."""
        horizon = to_micros(before, field="before")
        self._db.change(HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        self._db.change(_HORIZONS_GO, {"before": horizon, "limit": limit})
        looked = self._db.rows(_LOOK, (horizon, after, limit))
        old = [n for n, is_old, of_no_job in looked if is_old and of_no_job]
        gone = self._db.change(_LINES_GO, {"lines": ids_json(old), "before": horizon}) if old else 0
        # Lines are written in the order of time, but for those of one moment: a portion without an old one is the last.
        goes_on = len(looked) == limit and any(is_old for _, is_old, _ in looked)
        return LinesPruned(gone, looked[-1][0] if goes_on else None)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
