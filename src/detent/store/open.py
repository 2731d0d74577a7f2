"""From a database URL to its store. A driver is imported only when its database is asked for."""

from __future__ import annotations

import importlib.util

from detent.errors import InvalidSetting
from detent.model.clock import Clock, SystemClock
from detent.store.contract import Store

__all__ = ["open_store"]

_INSTALL = "a SQLite file; for PostgreSQL run `pip install 'detent[postgres]'`"
_ALLOWED = "sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/database"


def open_store(url: str, *, clock: Clock | None = None, connections_max: int = 8) -> Store:
    """The store behind `url`; nothing is touched until it is used. `clock` is SQLite's, PostgreSQL has its own;
    `connections_max` is PostgreSQL's, SQLite has one writer.

    Refuses a URL it does not understand with `InvalidSetting`, without repeating it (it may hold a password).
    """
    scheme, _, rest = url.partition("://")
    match scheme:
        case "sqlite":
            from detent.store.sqlite.driver.database_file import MEMORY, path_from_url
            from detent.store.sqlite.store import SqliteStore

            path = rest.removeprefix("/")
            if not rest.startswith("/") or not path:
                raise InvalidSetting("database url", "sqlite without a path", _ALLOWED)
            if path == MEMORY:
                raise InvalidSetting("database url", "sqlite in memory, which no other process could see", _ALLOWED)
            if "?" in path:
                allowed = f"{_ALLOWED}, without options; %3F stands for a ? in a file name"
                raise InvalidSetting("database url", "sqlite with options after a ?", allowed)
            return SqliteStore(path_from_url(path), clock=clock or SystemClock())
        case "postgresql" | "postgres":
            if importlib.util.find_spec("psycopg") is None:
                raise InvalidSetting("database url", "PostgreSQL, but no package psycopg", _INSTALL)
            from detent.store.postgres.store import PostgresStore

            return PostgresStore(url, connections_max=connections_max)
        case _:
            raise InvalidSetting("database url", f"scheme {scheme!r}" if rest else "no scheme", _ALLOWED)
