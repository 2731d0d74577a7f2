"""Throw-away databases as durable as real ones: PostgreSQL with fsync on, SQLite files with FULL, on a disk."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from detent.store.open import open_store
from detent.testing.postgres import Cluster, start_cluster

__all__ = ["Places", "migrate", "places"]

ON_DISK = "/var/tmp"
"""What lies here outlives a reboot, so it is not in memory, which /tmp may be."""


def migrate(url: str) -> None:
    """Give a database Detent's schema."""
    with closing(open_store(url)) as store:
        store.ready()


class Places:
    """A fresh database for every measurement."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self._directory = directory
        self._numbers = itertools.count(1)
        self._templates: dict[Callable[[str], None], str] = {}

    @contextmanager
    def postgres(self, make: Callable[[str], None] = migrate) -> Iterator[str]:
        """The url of a copy of what `make` made of an empty database."""
        if make not in self._templates:
            name = f"template_{next(self._numbers)}"
            make(self.cluster.create_database(name))
            self._templates[make] = name
        name = f"bench_{next(self._numbers)}"
        yield self.cluster.create_database(name, template=self._templates[make])
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
        yield Places(cluster, Path(directory))
