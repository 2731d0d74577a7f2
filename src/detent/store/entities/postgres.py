"""Entities and the record on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError, NotFound, TransitionRace
from detent.lifecycle.definition import Lifecycle
from detent.model.follow_records import ChangePlace, JobMark
from detent.model.record_cursor import RecordCursor
from detent.model.records import Moved, RecordFeedPage, RecordPage, RecordPlace, TransitionRow
from detent.model.service_records import LinesPruned
from detent.store.entities.record_feed import START_LINES_MAX, check_feed_limit, check_known, feed_page
from detent.store.entities.rules import decide, refuse_older, refuse_undeclared
from detent.store.jobs.filters import LOOKS_MAX, RecordSearch, record_bounds, record_page
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statement import Row, Statement, moment, named, numbers
from detent.store.postgres.verb_base import VerbBase, runs, runs_each

__all__ = ["PostgresEntities", "attach", "attached_versions"]

_COUNTS = """
SELECT state, count(*) FROM (SELECT {state}::text AS state FROM {table} LIMIT %s::integer) r
 GROUP BY state ORDER BY state
"""
# Processes that attach at the same time take turns, so that the one with the older lifecycle is refused.
_LOCK_LIFECYCLES = "LOCK TABLE detent.lifecycle IN SHARE ROW EXCLUSIVE MODE"
_VERSION_OF = "SELECT version FROM detent.lifecycle WHERE name = %s"
_ATTACHED = """
INSERT INTO detent.lifecycle AS l (name, version, table_name, attached_at) VALUES (%s, %s, %s, detent.clock())
ON CONFLICT (name) DO UPDATE
  SET version = excluded.version, table_name = excluded.table_name, attached_at = excluded.attached_at
  WHERE (l.version, l.table_name) <> (excluded.version, excluded.table_name)
"""
_LOG = """
SELECT detent.entity_move_v1(%s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text)
"""
_FIELDS = TransitionRow.__struct_fields__
_TRANSITIONS = f"SELECT {', '.join(_FIELDS)} FROM detent.transitions_v1(%s::text, %s::text)"
_STATE_AS_OF = "SELECT detent.state_as_of_v1(%s::text, %s::text, %s::timestamptz)"
_LOGGED = ("entity", "entity_id", "from_state", "to_state", "trigger", "at", "actor", "reason", "metadata")
_SEARCH = f"""
SELECT fits, {", ".join(f"(line).{name}" for name in _LOGGED)}, (line).correlation_id, (line).forced, (line).attempt, 0,
       (line).n
  FROM detent.record_search_v1(%s::text, %s::text, %s::text, %s::timestamptz, %s::timestamptz, %s::bigint, %s::integer,
                               %s::integer)
"""
_FEED = f"""
SELECT top, decided, pruned, (line).tenant, {", ".join(f"(line).{name}" for name in _LOGGED)}, (line).correlation_id,
       (line).forced, (line).attempt, 0, (line).n
  FROM detent.record_feed_v1(%s::bigint[], %s::bigint[], %s::integer)
"""
_MARKS = f"SELECT {', '.join(JobMark.__struct_fields__)} FROM detent.job_marks_v1(%s::bigint[])"
_CHANGES = f"""
SELECT {", ".join(_FIELDS)}
  FROM detent.job_changes_v1(%s::bigint, %s::integer, %s::integer, %s::bigint, %s::integer)
"""
_ENTITY_CHANGES = f"""
SELECT {", ".join("0" if name == "rank" else name for name in _FIELDS)}
  FROM detent.entity_changes_v1(%s::text, %s::text, %s::bigint, %s::integer)
"""
_PRUNE = "SELECT lines, next_n FROM detent.log_prune_v1(%s::timestamptz, %s::bigint, %s::integer, %s::text)"


def attach(
    connection: Connection, database: str, lifecycle: Lifecycle, table: str, id_column: str, state_column: str
) -> None:
    """Install the guards of a user's table in the transaction of a connection that belongs to the table's owner."""
    from detent.store.entities.guards import entity_guards, quoted, undeclared_states

    there = connection.execute("SELECT to_regclass(%s)", (quoted(table),)).fetchone()
    if there is None or there[0] is None:
        raise NotFound("table", table)
    guards = entity_guards("postgres", lifecycle, table, id_column, state_column)
    undeclared = undeclared_states(lifecycle, table, id_column, state_column)
    refuse_undeclared(database, lifecycle, connection.execute(undeclared.encode()).fetchall())
    connection.execute(_LOCK_LIFECYCLES)
    row = connection.execute(_VERSION_OF, (lifecycle.name,)).fetchone()
    refuse_older(database, lifecycle, row[0] if row else None)
    connection.execute(_ATTACHED, (lifecycle.name, lifecycle.version, table))
    connection.execute(guards.encode())


def attached_versions(connection: Connection) -> dict[str, int]:
    """Return the version of each attached lifecycle."""
    if connection.execute("SELECT to_regclass('detent.lifecycle')").fetchone() == (None,):
        return {}
    return dict(connection.execute("SELECT name, version FROM detent.lifecycle").fetchall())


def transitions(entity: str, entity_id: str) -> Statement[list[TransitionRow]]:
    params = (entity, entity_id)
    return Statement(_TRANSITIONS, params, _lines, writes=False)


def state_as_of(entity: str, entity_id: str, at: datetime) -> Statement[str | None]:
    params = (entity, entity_id, moment(at, field="at"))
    return Statement(_STATE_AS_OF, params, lambda rows: rows[0][0], writes=False)


def record_search(
    chosen: RecordSearch, after: RecordPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
) -> Statement[RecordPage]:
    since, place = record_bounds(chosen, after)
    params = (
        *(chosen.actor, chosen.entity, chosen.entity_id, moment(since, field="since")),
        *(moment(place.at, field="until"), place.n, limit, looks),
    )

    def decode(rows: Sequence[Row]) -> RecordPage:
        found = [TransitionRow(**named(_FIELDS, row[1:])) for row in rows]
        # The last row does not fit if the search stopped there before its end.
        stopped = found.pop() if rows and not rows[-1][0] else None
        return record_page(found, limit, None if stopped is None else RecordPlace(stopped.at, stopped.n))

    return Statement(_SEARCH, params, decode, writes=False)


def record_feed(cursor: RecordCursor, limit: int) -> Statement[RecordFeedPage]:
    lows, highs = zip(*cursor.ranges, strict=True)

    def decode(rows: Sequence[Row]) -> RecordFeedPage:
        top, decided, pruned = rows[0][:3]
        check_known(cursor, top)
        lines = [(row[3], TransitionRow(**named(_FIELDS, row[4:]))) for row in rows[1:]]
        return feed_page(cursor, lines, limit=limit, top=top, decided=decided, pruned=pruned)

    return Statement(_FEED, (numbers(lows), numbers(highs), limit), decode, writes=False)


def feed_start() -> Statement[RecordCursor]:
    """Return the place above which open transactions may have lines, and not too far back."""

    def decode(rows: Sequence[Row]) -> RecordCursor:
        top, decided = rows[0][:2]
        return RecordCursor.after(max(decided, top - START_LINES_MAX, 0))

    return Statement(_FEED, ("{1}", "{0}", 1), decode, writes=False)


def job_marks(ids: Sequence[int]) -> Statement[list[JobMark | None]]:
    def decode(rows: Sequence[Row]) -> list[JobMark | None]:
        found = {row[0]: JobMark(*row) for row in rows}
        return [found.get(job_id) for job_id in ids]

    return Statement(_MARKS, (numbers(ids),), decode, writes=False)


def job_changes(job_id: int, after: ChangePlace, limit: int = 100) -> Statement[list[TransitionRow]]:
    return Statement(_CHANGES, (job_id, after.attempt, after.rank, after.n, limit), _lines, writes=False)


def entity_changes(entity: str, entity_id: str, after_n: int = 0, limit: int = 100) -> Statement[list[TransitionRow]]:
    return Statement(_ENTITY_CHANGES, (entity, entity_id, after_n, limit), _lines, writes=False)


def _lines(rows: Sequence[Row]) -> list[TransitionRow]:
    return [TransitionRow(**named(_FIELDS, row)) for row in rows]


def log_prune(before: datetime, after: int, limit: int, actor: str) -> Statement[LinesPruned]:
    return Statement(_PRUNE, (moment(before, field="before"), after, limit, actor), lambda rows: LinesPruned(*rows[0]))


class PostgresEntities(VerbBase):
    """The verbs of entities and of the record."""

    transitions = runs(transitions)
    state_as_of = runs(state_as_of)
    record_search = runs(record_search)
    job_marks = runs_each(job_marks)
    job_changes = runs(job_changes)
    entity_changes = runs(entity_changes)
    log_prune = runs(log_prune)

    def record_feed(self, after: str | None = None, limit: int = 100) -> RecordFeedPage:
        """Read once. A reader that starts now passes over the lines that are there."""
        check_feed_limit(limit)
        if after is not None:
            return self._session.run(record_feed(RecordCursor.parse(after), limit))
        page = self._session.run(record_feed(self._session.run(feed_start()), START_LINES_MAX))
        return RecordFeedPage([], page.next, False, False, page.examined, page.decided)

    def entity_counts(self, table: str, state_column: str, rows_max: int) -> dict[str, int]:
        """Read the user's table with the caller's own rights."""
        from detent.store.entities.guards import quoted

        in_table, state_name = (quoted(name).replace("%", "%%") for name in (table, state_column))
        sql = _COUNTS.format(table=in_table, state=state_name)
        return self._session.run(Statement(sql, (rows_max,), lambda rows: dict(rows), writes=False))

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
        """Lock the row, write the log row, move the row. The row is changed with the caller's own rights.

        The statements are made of quoted names only; every value is a parameter.
        """
        from detent.store.entities.guards import quoted

        names = (quoted(name).replace("%", "%%") for name in (table, id_column, state_column))
        in_table, id_name, state_name = names
        look = f"SELECT {state_name}::text FROM {in_table} WHERE {id_name} = %s FOR UPDATE"
        change = f"UPDATE {in_table} SET {state_name} = %s WHERE {id_name} = %s AND {state_name} = %s RETURNING 1"

        def move(session: Session) -> Moved | DetentError:
            found = session.run(Statement(look, (entity_id,), lambda rows: [str(row[0]) for row in rows]))
            decided = decide(self._name, lifecycle, entity_id, found, trigger)
            if not isinstance(decided, tuple):
                return decided
            state, to_state = decided
            line = (lifecycle.name, entity_id, state, to_state, trigger, actor, reason, metadata)
            session.run(Statement(_LOG, line, lambda rows: None))
            if session.run(Statement(change, (to_state, entity_id, state), len)) != 1:
                raise TransitionRace(lifecycle.name, entity_id, state, "another state, or more than one row of this id")
            return Moved(entity_id, to_state, True)

        return self._session.together(move)
