"""What a move does to a SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from detent.model.clock import Clock, to_micros
from detent.model.move_records import NewMove
from detent.store.installed_release import Installed, fingerprint, this_release
from detent.store.migrate import is_complete
from detent.store.move.contract import Activity, Counters, Key, Place, Row
from detent.store.move.sqlite_closing import close, insertable, open_again, remove_guards
from detent.store.move.tables import KEPT, OF_A_NEW_DATABASE, Table, all_tables, copied_tables
from detent.store.sqlite import installed_parts, schema
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.driver.failures import values_checked
from detent.store.sqlite.driver.write_connection import WriteConnection

__all__ = ["MovableSqlite"]

_ALIVE_MICROS = 10_000_000
_RUNNING = """
SELECT DISTINCT j.id FROM detent_lease l, json_each(l.job_ids) held JOIN detent_job j ON j.id = held.value
 WHERE j.state = 'running' AND j.lease_id = l.id ORDER BY j.id
"""
_NAMED_MAX = 5
_WORKERS = "SELECT DISTINCT name FROM detent_worker WHERE seen_at > ? ORDER BY name"
_NEW_MOVE = """
INSERT INTO detent_database_move (direction, move_id, state, place, identity, actor, reason, began_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_OPEN_MOVE = """
SELECT place, identity, actor, reason, began_at FROM detent_database_move
 WHERE direction = ?1 AND state = ?2 AND move_id = coalesce(?3, move_id)
"""
_END = "UPDATE detent_database_move SET state = ?, ended_at = ? WHERE direction = ?"
_FORGET = "DELETE FROM detent_database_move WHERE direction = 'out'"
_LOG = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES ('database', ?, ?, ?, ?, ?, ?, ?)
"""
_PLACES = "SELECT name, copied, last_key, complete FROM detent_database_move_table"
_PLACE = """
INSERT INTO detent_database_move_table AS t (name, copied, last_key, complete)
VALUES (:name, :copied, :last_key, :complete)
ON CONFLICT (name) DO UPDATE SET copied = :copied, last_key = :last_key, complete = :complete
  WHERE t.copied = :was AND NOT t.complete
"""
# Only those numbers that are never used again, also if the newest row was deleted.
_NUMBERED = "SELECT substr(name, 8), seq + 1 FROM sqlite_sequence WHERE name LIKE 'detent!_%' ESCAPE '!'"
_IS_NUMBERED = """
SELECT substr(name, 8) FROM sqlite_master
 WHERE type = 'table' AND name LIKE 'detent!_%' ESCAPE '!' AND sql LIKE '%AUTOINCREMENT%'
"""
_ATTACHED = "SELECT name, table_name FROM detent_lifecycle ORDER BY name"


class MovableSqlite:
    """A file, as the source or the target of a move."""

    def __init__(self, file: Database, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    @property
    def name(self) -> str:
        """The URL of the file."""
        return self._file.name

    def has_schema(self) -> bool:
        """Also false if there is no file."""
        if not self._file.is_there():
            return False
        with self._file.reading() as connection:
            return bool(schema.applied_steps(connection))

    def is_of_this_release(self) -> bool:
        """By the migrations and by the row of the release that has installed its parts."""
        with self._file.reading() as connection:
            is_whole = is_complete(schema.KNOWN, schema.applied_steps(connection))
            found = installed_parts.installed(connection)
        return is_whole and found == Installed(this_release(), fingerprint("sqlite"), complete=True)

    def activity(self) -> Activity:
        """What runs now."""
        with self._file.reading() as connection:
            return self._activity(connection)

    def _activity(self, connection: sqlite3.Connection) -> Activity:
        running = [job_id for (job_id,) in connection.execute(_RUNNING).fetchall()]
        workers = connection.execute(_WORKERS, (self._now() - _ALIVE_MICROS,)).fetchall()
        return Activity(tuple(running[:_NAMED_MAX]), len(running), tuple(name for (name,) in workers))

    def table_with_rows(self) -> str | None:
        """The first such table."""
        with self._file.reading() as connection:
            return _table_with_rows(connection)

    # -- the source --------------------------------------------------------------------------------------------

    def close_out(self, move: NewMove) -> Activity | None:
        """In one write transaction, so nothing else is written meanwhile."""
        with self._file.writing() as connection:
            found = self._activity(connection)
            if found.is_any:
                return found
            now = self._now()
            self._log(connection, move.identity, "open", "moving", "move", move.actor, move.reason, now)
            values = ("out", move.move_id, "moving", move.target, move.identity, move.actor, move.reason, now)
            connection.execute(_NEW_MOVE, values)
            close(connection, "moving", move.target, now)
        return None

    def cancel(self, actor: str, reason: str | None) -> bool:
        """Drops the triggers that close it."""
        with self._file.writing() as connection:
            found = connection.execute(_OPEN_MOVE, ("out", "moving", None)).fetchone()
            if found is None:
                return False
            open_again(connection)
            connection.execute(_FORGET)
            _place, identity, _actor, _reason, began_at = found
            self._log(connection, identity, "moving", "open", "cancel", actor, reason, began_at)
        return True

    def mark_moved(self, move_id: str) -> bool:
        """The triggers say so from now on."""
        with self._file.writing() as connection:
            found = connection.execute(_OPEN_MOVE, ("out", "moving", move_id)).fetchone()
            if found is None:
                return False
            place, identity, actor, reason, began_at = found
            open_again(connection)
            at = self._log(connection, identity, "moving", "moved", "move", actor, reason, began_at)
            connection.execute(_END, ("moved", at, "out"))
            close(connection, "moved", place, at)
        return True

    # -- the target --------------------------------------------------------------------------------------------

    def begin_in(self, move: NewMove, *, wiped: bool) -> str | None:
        """SQLite cannot switch triggers off, so they are dropped until the rows are there."""
        with self._file.writing() as connection:
            if not wiped and (found := _table_with_rows(connection)) is not None:
                return found
            open_again(connection)
            remove_guards(connection)
            for table in all_tables():
                if table.name not in KEPT:
                    connection.execute(f"DELETE FROM detent_{table.name}")
            now = self._now()
            values = ("in", move.move_id, "loading", move.source, move.identity, move.actor, move.reason, now)
            connection.execute(_NEW_MOVE, values)
            close(connection, "loading", move.source, now)
        return None

    def places(self) -> dict[str, Place]:
        """From the table of places."""
        with self._file.reading() as connection:
            found = connection.execute(_PLACES).fetchall()
        return {
            name: Place(copied, None if last_key is None else json.loads(last_key), bool(complete))
            for name, copied, last_key, complete in found
        }

    def write(self, move_id: str, table: Table, rows: Sequence[Row], was: Place, place: Place) -> bool:
        """The guard against inserts is dropped and created again inside the transaction. Synced by `finish_load`."""
        columns = ", ".join(table.names)
        insert = f"INSERT INTO detent_{table.name} ({columns}) VALUES ({', '.join('?' * len(table.columns))})"

        def work(connection: WriteConnection) -> bool:
            found = connection.execute(_OPEN_MOVE, ("in", "loading", move_id)).fetchone()
            if found is None or connection.execute(_PLACE, _place_values(table, was, place)).rowcount != 1:
                return False
            if rows:
                closing = insertable(connection, table.name, "loading", found[0], found[4])
                connection.executemany(insert, rows)
                connection.execute(closing)
            return True

        with values_checked():
            return self._file.write(work, synced=False)

    def finish_load(self, move_id: str, counters: Counters) -> None:
        """The guards are installed as `detent migrate` installs them."""
        with self._file.writing() as connection:
            found = connection.execute(_OPEN_MOVE, ("in", "loading", move_id)).fetchone()
            if found is None:
                return
            open_again(connection)
            connection.execute("DELETE FROM detent_ids")
            connection.execute("INSERT INTO detent_ids (next) VALUES (?)", (counters["ids"],))
            for (name,) in connection.execute(_IS_NUMBERED).fetchall():
                connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (f"detent_{name}",))
                last = (f"detent_{name}", counters[name] - 1)
                connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", last)
            installed_parts.install(connection, self._clock, self.name)
            close(connection, "loading", found[0], found[4])

    def open_in(self, move_id: str) -> bool:
        """Drops the triggers that close it."""
        with self._file.writing() as connection:
            found = connection.execute(_OPEN_MOVE, ("in", "loading", move_id)).fetchone()
            if found is None:
                return False
            _place, identity, actor, reason, began_at = found
            open_again(connection)
            at = self._log(connection, identity, "moving", "open", "arrive", actor, reason, began_at)
            connection.execute(_END, ("arrived", at, "in"))
            connection.execute("DELETE FROM detent_database_move_table")
        return True

    # -- both --------------------------------------------------------------------------------------------------

    @contextmanager
    def rows(self, table: Table, after: Key | None) -> Iterator[Iterator[Row]]:
        """On a snapshot."""
        names, key = ", ".join(table.names), ", ".join(table.key)
        where = f" WHERE ({key}) > ({', '.join('?' * len(table.key))})" if after is not None else ""
        sql = f"SELECT {names} FROM detent_{table.name}{where} ORDER BY {key}"
        with self._file.reading() as connection:
            yield connection.execute(sql, tuple(after or ()))

    def counts(self, tables: Sequence[Table]) -> dict[str, int]:
        """On a snapshot."""
        with self._file.reading() as connection:
            return {
                table.name: int(connection.execute(f"SELECT count(*) FROM detent_{table.name}").fetchone()[0])
                for table in tables
            }

    def counters(self) -> dict[str, int]:
        """Those that do not follow from the rows."""
        with self._file.reading() as connection:
            (ids,) = connection.execute("SELECT max(next) FROM detent_ids").fetchone()
            numbered = {name: 1 for (name,) in connection.execute(_IS_NUMBERED).fetchall()}
            numbered |= dict(connection.execute(_NUMBERED).fetchall())
        return {"ids": ids or 1} | numbered

    def attached(self) -> list[tuple[str, str]]:
        """As the table of lifecycles says."""
        with self._file.reading() as connection:
            return connection.execute(_ATTACHED).fetchall()

    # -- helpers -----------------------------------------------------------------------------------------------

    def _log(
        self,
        connection: sqlite3.Connection,
        identity: str,
        from_state: str,
        to_state: str,
        trigger: str,
        actor: str,
        reason: str | None,
        after: int,
    ) -> int:
        """Put a step of the move on record. Return its time, which is not before `after`."""
        at = max(self._now(), after)
        connection.execute(_LOG, (identity, from_state, to_state, trigger, actor, reason, at))
        return at

    def _now(self) -> int:
        return to_micros(self._clock.now(), field="now")


def _table_with_rows(connection: sqlite3.Connection) -> str | None:
    for table in copied_tables():
        if table.name not in OF_A_NEW_DATABASE:
            ((has_rows,),) = connection.execute(f"SELECT EXISTS (SELECT 1 FROM detent_{table.name})").fetchall()
            if has_rows:
                return table.name
    return None


def _place_values(table: Table, was: Place, place: Place) -> dict[str, Any]:
    last_key = None if place.last_key is None else json.dumps(place.last_key)
    noted = {"name": table.name, "copied": place.copied, "last_key": last_key, "complete": int(place.complete)}
    return noted | {"was": was.copied}
