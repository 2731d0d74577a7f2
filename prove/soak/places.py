"""The databases of the soak: where they are, how large they are, and what can be done to them."""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Protocol

import psycopg

from detent.store.open import open_store
from detent.testing.postgres import Cluster, PostgresUnavailable, find_binaries, start_cluster
from detent.testing.stores import plain_connection
from prove.soak.application import TABLES

__all__ = ["Kind", "Place", "place"]

Kind = Literal["sqlite", "postgresql"]
_MIB = 1 << 20
_HELD_SECONDS = 1.0
_SETTINGS = {
    "checkpoint_timeout": "'30s'",
    "max_wal_size": "'64MB'",
    "min_wal_size": "'32MB'",
    "autovacuum_naptime": "'5s'",
}
"""So that a run of minutes meets what happens within hours on a server with the default settings."""
_SIZES = """
SELECT c.relname, pg_relation_size(c.oid), c.relkind = 'i' FROM pg_class c
 WHERE c.relkind IN ('r', 'i', 't') AND (c.relnamespace = 'detent'::regnamespace
       OR c.oid IN (SELECT reltoastrelid FROM pg_class WHERE relnamespace = 'detent'::regnamespace))
"""
_CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
_WAL = "SELECT sum(size)::bigint FROM pg_ls_waldir()"


class Place(Protocol):
    """One database."""

    url: str
    faults: tuple[str, ...]
    """What can be done to it; each is a method."""

    def sizes(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the bytes of each table and of each index."""
        ...

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the other quantities: WAL and connections, by name of the quantity and of the line."""
        ...


class SqlitePlace:
    """A file."""

    faults: tuple[str, ...] = ("hold_the_write_lock",)

    def __init__(self, folder: Path) -> None:
        self._path = folder / "soak.db"
        self.url = f"sqlite:///{self._path}"

    def sizes(self) -> tuple[dict[str, int], dict[str, int]]:
        """By SQLite's table of pages. Without it, the pages in use count as one table."""
        with closing(sqlite3.connect(self._path, timeout=30)) as connection:
            kinds = dict(connection.execute("SELECT name, type FROM sqlite_master").fetchall())
            try:
                found = connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall()
            except sqlite3.OperationalError:
                asked = [f"SELECT * FROM pragma_{name}" for name in ("page_count", "freelist_count", "page_size")]
                pages, unused, size = (connection.execute(one).fetchone()[0] for one in asked)
                return {"all": (pages - unused) * size}, {}
        ours = [(name, size) for name, size in found if name.startswith("detent_") or "detent_" in name]
        tables = {name: size for name, size in ours if kinds.get(name) != "index"}
        return tables, {name: size for name, size in ours if name not in tables}

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the sizes of the files."""
        wal = self._path.with_name(self._path.name + "-wal")
        size = 0
        with suppress(FileNotFoundError):
            size = wal.stat().st_size
        return {"WAL, MiB": {"log": size / _MIB}, "file, MiB": {"database": self._path.stat().st_size / _MIB}}

    def hold_the_write_lock(self, chance: random.Random) -> str:
        """Another program holds the write lock for a second."""
        with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(_HELD_SECONDS)
            connection.execute("ROLLBACK")
        return "held the write lock"


class PostgresPlace:
    """A database on a server of its own, which can be restarted."""

    faults: tuple[str, ...] = ("cut_a_connection", "cut_a_connection", "cut_a_connection", "restart_the_server")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.url = cluster.create_database(cluster.new_name("soak"))
        with closing(plain_connection(cluster.url)) as connection:
            connection.autocommit = True
            for name, value in _SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = {value}")
            connection.execute("SELECT pg_reload_conf()")

    def sizes(self) -> tuple[dict[str, int], dict[str, int]]:
        """By the files of each relation. What is too long for a row counts as tables."""
        found = self._ask(_SIZES)
        tables = {name: size for name, size, is_index in found if not is_index}
        return tables, {name: size for name, size, is_index in found if is_index}

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the size of the log, the connections, and the memory that their processes have for themselves."""
        memory = sum(_anonymous_kib(pid) for (pid,) in self._ask(_BACKENDS))
        return {
            "WAL, MiB": {"log": self._ask(_WAL)[0][0] / _MIB},
            "connections": {"PostgreSQL": self._ask(_CONNECTIONS)[0][0]},
            "memory of backends, MiB": {"all": memory / 1024},
        }

    def cut_a_connection(self, chance: random.Random) -> str:
        """The server ends a connection, whatever it is doing."""
        pids = [pid for (pid,) in self._ask(_BACKENDS)]
        if pids:
            self._ask(f"SELECT pg_terminate_backend({chance.choice(pids)})")
        return "cut a connection"

    def restart_the_server(self, chance: random.Random) -> str:
        """The server crashes and starts again."""
        self._cluster.restart(down_for=chance.uniform(0.0, 2.0))
        return "restarted PostgreSQL"

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, connect_timeout=10) as connection:
            return connection.execute(sql.encode()).fetchall()


def _anonymous_kib(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    return 0


@contextmanager
def place(kind: Kind) -> Iterator[Place]:
    """Yield a migrated database with the tables of the soak; it is removed at the end."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="detent-soak-") as folder:
            sqlite = SqlitePlace(Path(folder))
            _prepare(sqlite.url)
            yield sqlite
        return
    binaries = find_binaries()
    if not binaries:
        raise PostgresUnavailable("the soak restarts its server, so it needs the binaries of PostgreSQL")
    with start_cluster(bin_dir=binaries[0]) as cluster:
        postgres = PostgresPlace(cluster)
        _prepare(postgres.url)
        yield postgres


def _prepare(url: str) -> None:
    with closing(open_store(url)) as store:
        store.ready()
    with closing(plain_connection(url)) as connection:
        for table in TABLES:
            connection.execute(table)
        connection.commit()
