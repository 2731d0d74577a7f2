"""The triggers that close a PostgreSQL database: one on each table, which refuses every statement that writes. They
exist only while the database is closed."""

from __future__ import annotations

from detent.store.move.tables import all_tables
from detent.store.postgres.driver.connection import Connection

__all__ = ["CLOSING", "close", "guards_off", "guards_on", "open_again", "pass_through"]

CLOSING = "database_closed"
"""The name of the triggers, and of the function that they call."""

_NOT_CLOSED = ("database_move", "database_move_table")
_CLOSE = """
CREATE OR REPLACE TRIGGER {name} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON detent.{table}
  FOR EACH STATEMENT EXECUTE FUNCTION detent.{name}()
"""
_PASS = "SELECT set_config('detent.database_move', %s, true)"


def close(connection: Connection) -> None:
    """Close the database. Inside the caller's transaction, which waits for all other transactions that write."""
    for table in _closed_tables():
        connection.execute(_CLOSE.format(name=CLOSING, table=table).encode())


def open_again(connection: Connection) -> None:
    """Open the database. Inside the caller's transaction."""
    for table in _closed_tables():
        connection.execute(f"DROP TRIGGER IF EXISTS {CLOSING} ON detent.{table}".encode())


def guards_off(connection: Connection) -> None:
    """Switch every guard off but the one that closes the database. The owner of the tables may; no role has to be a
    superuser for that."""
    for table in _closed_tables():
        connection.execute(f"ALTER TABLE detent.{table} DISABLE TRIGGER USER, ENABLE TRIGGER {CLOSING}".encode())


def guards_on(connection: Connection) -> None:
    """Switch every guard on."""
    for table in _closed_tables():
        connection.execute(f"ALTER TABLE detent.{table} ENABLE TRIGGER USER".encode())


def pass_through(connection: Connection, move_id: str) -> None:
    """Let the caller's transaction write to a database that is closed for this move."""
    connection.execute(_PASS, (move_id,))


def _closed_tables() -> list[str]:
    return [table.name for table in all_tables() if table.name not in _NOT_CLOSED]
