"""Throw-away databases as durable as real ones: PostgreSQL with fsync on, SQLite files with FULL, on a disk."""

from __future__ import annotations

import itertools
import os
import secrets
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from detent.store.open import open_store
from detent.testing.postgres import Cluster, start_cluster

__all__ = ["Places", "ledger", "migrate", "places", "statement"]

ON_DISK = "/var/tmp"
"""What lies here outlives a reboot, so it is not in memory, which /tmp may be."""

SERVER = {"shared_buffers": "2GB", "checkpoint_timeout": "15min"}
"""What the server of a measurement is given; everything that concerns durability is as it comes."""


def migrate(url: str) -> None:
    """Give a database Detent's schema."""
    with closing(open_store(url)) as store:
        store.ready()


def ledger(url: str) -> None:
    """The table that jobs write their one row into."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE ledger (n bigint NOT NULL)")
    else:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.execute("CREATE TABLE ledger (n INTEGER NOT NULL)")


def statement(url: str, sql: str) -> None:
    """One statement, for good."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url) as connection:
            connection.execute(sql.encode())
    else:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.execute(sql)


class Places:
    """A fresh database for every measurement."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self._directory = directory
        self._token = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._templates: dict[object, str] = {}

    @contextmanager
    def postgres(self, make: Callable[[str], None] = migrate, known_as: str | None = None) -> Iterator[str]:
        """The url of a copy of what `make` made of an empty database, once for all that are known by one name."""
        key = known_as or make
        if key not in self._templates:
            name = f"bench_{self._token}_template_{next(self._numbers)}"
            make(self.cluster.create_database(name))
            self._templates[key] = name
        name = f"bench_{self._token}_{next(self._numbers)}"
        yield self.cluster.create_database(name, template=self._templates[key])
        self.cluster.drop_database(name)

    @contextmanager
    def sqlite(self, make: Callable[[str], None] = migrate) -> Iterator[str]:
        """The url of a new file that `make` has filled."""
        with tempfile.TemporaryDirectory(dir=self._directory) as directory:
            url = f"sqlite:///{directory}/bench.db"
            make(url)
            yield url

    def settle(self, *urls: str) -> None:
        """Between two phases: what autovacuum would have done by then."""
        for url in urls:
            if url.startswith("postgresql:"):
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute("VACUUM (ANALYZE)")


@contextmanager
def places() -> Iterator[Places]:
    """Both kinds of database; nothing is left of them afterwards."""
    if os.access(ON_DISK, os.W_OK):
        os.environ.setdefault("TMPDIR", ON_DISK)
    with start_cluster(fsync=True) as cluster, tempfile.TemporaryDirectory() as directory:
        give_room(cluster)
        yield Places(cluster, Path(directory))


def give_room(cluster: Cluster) -> None:
    """Memory and log as on a server of its own: else the measurement is of checkpoints. A stranger's server is left as
    it is."""
    if cluster.home is None:
        return
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        for name, value in SERVER.items():
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    cluster.restart()
