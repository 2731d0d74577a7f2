"""A database whose tables have one more column each, as after a migration of a later release that allows this one."""

from __future__ import annotations

from contextlib import closing

from detent.testing.stores import is_sqlite, plain_connection
from prove.upgrades.next_release import NEXT
from tests.migrations.schemas import known, write_step

__all__ = ["COLUMN", "widen"]

COLUMN = "of_a_later_release"
_SQLITE = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'detent!_%' ESCAPE '!'"
_POSTGRES = """
SELECT 'detent.' || relname FROM pg_class WHERE relnamespace = 'detent'::regnamespace AND relkind = 'r'
"""


def widen(url: str) -> None:
    """Add a column to every table, and say that a later release has done it.

    The functions stay those of this release, as between the migration and the functions that the later release
    installs after it. The column is NOT NULL with a default: code that names no columns would write NULL into it.
    """
    with closing(plain_connection(url)) as connection:
        newest = known(url)[-1].version
        write_step(url, connection, newest + 1, "wider", "x" * 32, newest)
        installed = "detent_installed" if is_sqlite(url) else "detent.installed"
        connection.execute(f"UPDATE {installed} SET release = '{NEXT}'")
        for (table,) in connection.execute(_SQLITE if is_sqlite(url) else _POSTGRES).fetchall():
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {COLUMN} text NOT NULL DEFAULT 'none'")
        connection.commit()
