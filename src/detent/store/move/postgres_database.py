"""What a move does to a PostgreSQL database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

from detent.errors import DatabaseBusy
from detent.model.clock import Clock
from detent.model.move_records import NewMove
from detent.store.installed_release import Installed, fingerprint, this_release
from detent.store.migrate import is_complete
from detent.store.move.contract import Activity, Counters, Key, Place, Row
from detent.store.move.postgres_closing import close, guards_off, guards_on, open_again, pass_through
from detent.store.move.postgres_rows import copy_rows, count_rows, read_rows
from detent.store.move.tables import KEPT, OF_A_NEW_DATABASE, Table, all_tables, copied_tables
from detent.store.postgres import schema
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.driver.connection_pool import ConnectionPool
from detent.store.postgres.driver.failures import translating

__all__ = ["MovablePostgres"]

T = TypeVar("T")

_LOCK_MILLISECONDS_MAX = 300
"""Milliseconds for which closing the database waits for one lock, and other statements behind it."""
_TRIES_MAX = 100
_PAUSE = 0.1
_NAMED_MAX = 5
_ALIVE_SECONDS = 10
_RUNNING = """
SELECT DISTINCT j.id FROM detent.lease l CROSS JOIN unnest(l.job_ids) held (id) JOIN detent.job j ON j.id = held.id
 WHERE j.state = 'running' AND j.lease_id = l.id ORDER BY j.id
"""
_WORKERS = """
SELECT DISTINCT name FROM detent.worker WHERE seen_at > detent.clock() - make_interval(secs => %s) ORDER BY name
"""
_NEW_MOVE = """
INSERT INTO detent.database_move (direction, move_id, state, place, identity, actor, reason, began_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, detent.clock())
"""
_OPEN_MOVE = """
SELECT move_id, identity, actor, reason FROM detent.database_move
 WHERE direction = %s AND state = %s AND move_id = coalesce(%s, move_id) FOR UPDATE
"""
_END = """
UPDATE detent.database_move SET state = %s, ended_at = greatest(detent.clock(), began_at) WHERE direction = %s
"""
_FORGET = "DELETE FROM detent.database_move WHERE direction = 'out'"
_LOG = """
INSERT INTO detent.transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
SELECT 'database', m.identity, %s, %s, %s, %s, %s, greatest(detent.clock(), m.began_at)
  FROM detent.database_move m WHERE m.direction = %s
"""
_PLACES = "SELECT name, copied, last_key, complete FROM detent.database_move_table"
_PLACE = """
INSERT INTO detent.database_move_table AS t (name, copied, last_key, complete)
VALUES (%(name)s, %(copied)s, %(last_key)s, %(complete)s)
ON CONFLICT (name) DO UPDATE SET copied = %(copied)s, last_key = %(last_key)s, complete = %(complete)s
  WHERE t.copied = %(was)s AND NOT t.complete
"""
_NUMBERED = """
SELECT c.relname, a.attname, pg_get_serial_sequence(format('detent.%%I', c.relname), a.attname)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.relnamespace = 'detent'::regnamespace AND c.relkind = 'r' AND a.attidentity <> '' ORDER BY c.relname
"""
_NEXT = "SELECT last_value + is_called::integer FROM {sequence}"
# As if the number before had been given out: readers of the record take the last one as seen.
_SET = "SELECT setval(%s::text::regclass, greatest(%s::bigint - 1, 1), %s::bigint > 1)"
_LANES = "SELECT coalesce(max(id & 4294967295), 0) + 1 FROM detent.lane"
_ATTACHED = "SELECT name, table_name FROM detent.lifecycle ORDER BY name"
_LONG = """
SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)
"""
_NOT_SYNCED = "SELECT set_config('synchronous_commit', 'off', true)"


class MovablePostgres:
    """A database, as the source or the target of a move. Its login owns Detent's tables."""

    def __init__(self, pool: ConnectionPool, name: str, clock: Clock) -> None:
        self._pool = pool
        self._name = name
        self._clock = clock

    @property
    def name(self) -> str:
        """The database for messages, without secrets."""
        return self._name

    def has_schema(self) -> bool:
        """Whether migrations were applied."""
        with self._pool.connection() as connection:
            return bool(schema.applied_steps(connection, self._name))

    def is_of_this_release(self) -> bool:
        """By the migrations and by the row of the release that has installed its parts."""
        with self._pool.connection() as connection, translating(self._name):
            is_whole = is_complete(schema.KNOWN, schema.applied_steps(connection, self._name))
            found = schema.installed(connection)
        return is_whole and found == Installed(this_release(), fingerprint("postgres"), complete=True)

    def activity(self) -> Activity:
        """What runs now."""
        return self._reading(_activity)

    def table_with_rows(self) -> str | None:
        """The first such table."""
        return self._reading(_table_with_rows)

    # -- the source --------------------------------------------------------------------------------------------

    def close_out(self, move: NewMove) -> Activity | None:
        """The transaction waits for all others that write; what they have written is copied."""

        def work(connection: Connection) -> Activity | None:
            close(connection)
            if (found := _activity(connection)).is_any:
                raise _Refused(found)
            values = ("out", move.move_id, "moving", move.target, move.identity, move.actor, move.reason)
            connection.execute(_NEW_MOVE, values)
            pass_through(connection, move.move_id)
            connection.execute(_LOG, ("open", "moving", "move", move.actor, move.reason, "out"))
            return None

        try:
            return self._locking(work)
        except _Refused as refused:
            return refused.activity

    def cancel(self, actor: str, reason: str | None) -> bool:
        """Drops the triggers that close it."""

        def work(connection: Connection) -> bool:
            if connection.execute(_OPEN_MOVE, ("out", "moving", None)).fetchone() is None:
                return False
            open_again(connection)
            connection.execute(_LOG, ("moving", "open", "cancel", actor, reason, "out"))
            connection.execute(_FORGET)
            return True

        return self._locking(work)

    def mark_moved(self, move_id: str) -> bool:
        """The triggers stay, and say so from now on."""

        def work(connection: Connection) -> bool:
            found = connection.execute(_OPEN_MOVE, ("out", "moving", move_id)).fetchone()
            if found is None:
                return False
            _, _, actor, reason = found
            pass_through(connection, move_id)
            connection.execute(_LOG, ("moving", "moved", "move", actor, reason, "out"))
            connection.execute(_END, ("moved", "out"))
            return True

        return self._locking(work)

    # -- the target --------------------------------------------------------------------------------------------

    def begin_in(self, move: NewMove, *, wiped: bool) -> str | None:
        """Switches the guards off until the rows are there."""

        def work(connection: Connection) -> str | None:
            close(connection)
            if not wiped and (found := _table_with_rows(connection)) is not None:
                raise _NotEmpty(found)
            guards_off(connection)
            connection.execute("DELETE FROM detent.database_move")
            values = ("in", move.move_id, "loading", move.source, move.identity, move.actor, move.reason)
            connection.execute(_NEW_MOVE, values)
            pass_through(connection, move.move_id)
            emptied = [table.name for table in all_tables() if table.name not in (*KEPT, "database_move")]
            if wiped:
                connection.execute(f"TRUNCATE {', '.join(f'detent.{name}' for name in emptied)}".encode())
            for name in emptied if not wiped else ():
                connection.execute(f"DELETE FROM detent.{name}".encode())
            return None

        try:
            return self._locking(work)
        except _NotEmpty as not_empty:
            return not_empty.table

    def places(self) -> dict[str, Place]:
        """From the table of places."""
        found = self._reading(lambda connection: connection.execute(_PLACES).fetchall())
        return {
            name: Place(copied, None if last_key is None else json.loads(last_key), complete)
            for name, copied, last_key, complete in found
        }

    def write(self, move_id: str, table: Table, rows: Sequence[Row], was: Place, place: Place) -> bool:
        """With COPY. Synced by `finish_load`, since a crash takes the place back together with the rows."""
        last_key = None if place.last_key is None else json.dumps(place.last_key)
        noted = {"name": table.name, "copied": place.copied, "last_key": last_key, "complete": place.complete}

        def work(connection: Connection) -> bool:
            connection.execute(_NOT_SYNCED)
            if connection.execute(_OPEN_MOVE, ("in", "loading", move_id)).fetchone() is None:
                return False
            if connection.execute(_PLACE, noted | {"was": was.copied}).rowcount != 1:
                return False
            if rows:
                pass_through(connection, move_id)
                copy_rows(connection, table, rows)
            return True

        return self._transaction(work)

    def finish_load(self, move_id: str, counters: Counters) -> None:
        """Sequences continue after the highest number on either side."""

        def work(connection: Connection) -> None:
            if connection.execute(_OPEN_MOVE, ("in", "loading", move_id)).fetchone() is None:
                return
            wanted = {"detent.id_seq": counters["ids"], "detent.lane_id_seq": counters.get("lanes", 1)}
            wanted["detent.lane_id_seq"] = max(wanted["detent.lane_id_seq"], _one(connection, _LANES))
            for name, column, sequence in connection.execute(_NUMBERED, ()).fetchall():
                highest = _one(connection, f"SELECT coalesce(max({column}), 0) FROM detent.{name}")
                wanted[sequence] = max(counters.get(name, 1), highest + 1)
            for sequence, number in wanted.items():
                connection.execute(_SET, (sequence, number, number))
            guards_on(connection)

        self._locking(work)
        self._analyze()

    def _analyze(self) -> None:
        """Let the planner know how large the tables are, before anything reads them."""
        with self._pool.connection() as connection, translating(self._name):
            for table in copied_tables():
                connection.execute(f"ANALYZE detent.{table.name}".encode())

    def open_in(self, move_id: str) -> bool:
        """Drops the triggers that close it."""

        def work(connection: Connection) -> bool:
            found = connection.execute(_OPEN_MOVE, ("in", "loading", move_id)).fetchone()
            if found is None:
                return False
            _, _, actor, reason = found
            open_again(connection)
            connection.execute(_LOG, ("moving", "open", "arrive", actor, reason, "in"))
            connection.execute(_END, ("arrived", "in"))
            connection.execute("DELETE FROM detent.database_move_table")
            return True

        return self._locking(work)

    # -- both --------------------------------------------------------------------------------------------------

    @contextmanager
    def rows(self, table: Table, after: Key | None) -> Iterator[Iterator[Row]]:
        """In one transaction, as the server sends them."""
        with self._pool.connection() as connection, translating(self._name), connection.transaction():
            connection.execute(_LONG)
            found = read_rows(connection, table, after)
            try:
                yield found
            finally:
                found.close()

    def counts(self, tables: Sequence[Table]) -> dict[str, int]:
        """Each by itself: nothing is written meanwhile."""
        return self._reading(
            lambda connection: {table.name: count_rows(connection, table) for table in tables},
        )

    def counters(self) -> dict[str, int]:
        """The sequences."""

        def work(connection: Connection) -> dict[str, int]:
            found = {"ids": "detent.id_seq", "lanes": "detent.lane_id_seq"}
            found |= {name: sequence for name, _, sequence in connection.execute(_NUMBERED, ()).fetchall()}
            return {name: _one(connection, _NEXT.format(sequence=sequence)) for name, sequence in found.items()}

        return self._reading(work)

    def attached(self) -> list[tuple[str, str]]:
        """As the table of lifecycles says."""
        return self._reading(lambda connection: [(name, table) for name, table in connection.execute(_ATTACHED)])

    # -- transactions ------------------------------------------------------------------------------------------

    def _reading(self, work: Callable[[Connection], T]) -> T:
        return self._transaction(lambda connection: (connection.execute(_LONG), work(connection))[1])

    def _transaction(self, work: Callable[[Connection], T]) -> T:
        with self._pool.connection() as connection, translating(self._name), connection.transaction():
            return work(connection)

    def _locking(self, work: Callable[[Connection], T]) -> T:
        """Work that locks tables. It waits for a lock only for a moment, and is tried again: other statements queue up
        behind a lock that waits."""

        def briefly(connection: Connection) -> T:
            connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_MILLISECONDS_MAX}ms'".encode())
            return work(connection)

        for _ in range(_TRIES_MAX):
            try:
                return self._transaction(briefly)
            except DatabaseBusy as error:
                if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected):
                    raise
                last = error
            self._clock.sleep(_PAUSE)
        found = "another transaction, perhaps of a `detent move`, holds its tables for too long; end it, and try again"
        raise DatabaseBusy(self._name, f"{found}: {last.detail}") from last


class _Refused(Exception):
    """Rolls back: jobs or workers are running."""

    def __init__(self, activity: Activity) -> None:
        self.activity = activity


class _NotEmpty(Exception):
    """Rolls back: a table has rows."""

    def __init__(self, table: str) -> None:
        self.table = table


def _activity(connection: Connection) -> Activity:
    running = [job_id for (job_id,) in connection.execute(_RUNNING).fetchall()]
    workers = connection.execute(_WORKERS, (_ALIVE_SECONDS,)).fetchall()
    return Activity(tuple(running[:_NAMED_MAX]), len(running), tuple(name for (name,) in workers))


def _table_with_rows(connection: Connection) -> str | None:
    for table in copied_tables():
        if table.name not in OF_A_NEW_DATABASE:
            found = connection.execute(f"SELECT EXISTS (SELECT 1 FROM detent.{table.name})".encode()).fetchone()
            if found == (True,):
                return table.name
    return None


def _one(connection: Connection, sql: str) -> int:
    found: Any = connection.execute(sql.encode()).fetchone()
    return int(found[0])
