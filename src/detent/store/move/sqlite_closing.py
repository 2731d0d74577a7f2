"""The triggers that close a SQLite file: one for each table and kind of change. They exist only while it is closed.

differs: on PostgreSQL one function reads the row of the move. Here the text of the message is in the triggers.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC

from detent.model.clock import from_micros
from detent.store.lifecycle_sql import literal
from detent.store.move.closing import closed_message
from detent.store.move.tables import all_tables

__all__ = ["close", "insertable", "open_again", "remove_guards"]

_PREFIX = "detent_closed_"
_NOT_CLOSED = ("database_move", "database_move_table")
_CHANGES = ("INSERT", "UPDATE", "DELETE")
_THERE = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND substr(name, 1, ?) = ?"
_GUARDS = """
SELECT name FROM sqlite_master
 WHERE type = 'trigger' AND tbl_name LIKE 'detent!_%' ESCAPE '!' AND name LIKE 'detent!_%' ESCAPE '!'
"""


def close(connection: sqlite3.Connection, state: str, place: str, since: int) -> None:
    """Close the file, or say another state. Inside the caller's transaction."""
    open_again(connection)
    message = _message(state, place, since)
    tables = [f"detent_{table.name}" for table in all_tables() if table.name not in _NOT_CLOSED]
    for table in (*tables, "detent_ids"):
        for change in _CHANGES:
            connection.execute(_trigger(table, change, message))


def open_again(connection: sqlite3.Connection) -> None:
    """Open the file. Inside the caller's transaction."""
    for (name,) in connection.execute(_THERE, (len(_PREFIX), _PREFIX)).fetchall():
        connection.execute(f"DROP TRIGGER {name}")


def insertable(connection: sqlite3.Connection, table: str, state: str, place: str, since: int) -> str:
    """Let the caller's transaction insert into a table. Return the statement that closes the table again."""
    connection.execute(f"DROP TRIGGER IF EXISTS {_PREFIX}insert_{table}")
    return _trigger(f"detent_{table}", "INSERT", _message(state, place, since))


def remove_guards(connection: sqlite3.Connection) -> None:
    """Remove every trigger of Detent's."""
    for (name,) in connection.execute(_GUARDS).fetchall():
        connection.execute(f"DROP TRIGGER {name}")


def _message(state: str, place: str, since: int) -> str:
    at = from_micros(since).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return closed_message(state, place, at)


def _trigger(table: str, change: str, message: str) -> str:
    name = f"{_PREFIX}{change.lower()}_{table.removeprefix('detent_')}"
    return f"CREATE TRIGGER {name} BEFORE {change} ON {table} BEGIN SELECT RAISE(ABORT, {literal(message)}); END"
