"""A throw-away database with an application on it, for deeds. After some deeds there comes a new one, since tables that
have grown make every deed slower, and a finding may disturb what comes after it."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from detent.model.clock import TurnableClock
from detent.store.open import open_store
from detent.testing.harness import Harness
from detent.testing.postgres import Cluster, start_cluster
from detent.testing.postgres_guardian import MEMORY
from detent.testing.stores import START, install_clock, plain_connection
from prove.coverage import transitions_of
from prove.kills import jobs, runs
from prove.kills.deed import LEASE, TABLES

__all__ = ["Kind", "Scenes", "databases", "declare_deeds"]

Kind = Literal["sqlite", "postgres"]


@contextmanager
def databases(kind: Kind, cluster: Cluster | None = None) -> Iterator[Iterator[AbstractContextManager[str]]]:
    """Yield copies of a migrated database with the tables of the deeds, one after the other, without end. Each is a
    context, whose value is its URL and which removes it. On PostgreSQL its time is read from a table. `cluster` is a
    server that the caller may stop; else all figures share one."""
    with ExitStack() as exits:
        if kind == "sqlite":
            place = MEMORY if Path(MEMORY).is_dir() else None
            folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="detent-kills-", dir=place)))
            yield _files(folder)
        else:
            yield _server_databases(cluster or exits.enter_context(start_cluster()), exits)


def _files(folder: Path) -> Iterator[AbstractContextManager[str]]:
    template = folder / "template.db"
    _prepare(f"sqlite:///{template}", TurnableClock(START))

    @contextmanager
    def copy() -> Iterator[str]:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            path = Path(own) / "kills.db"
            path.write_bytes(template.read_bytes())
            yield f"sqlite:///{path}"

    while True:
        yield copy()


def _server_databases(cluster: Cluster, exits: ExitStack) -> Iterator[AbstractContextManager[str]]:
    template = cluster.new_name("kills_template")
    exits.callback(cluster.drop_database, template)
    url = cluster.create_database(template)
    _prepare(url)
    install_clock(url)

    @contextmanager
    def copy() -> Iterator[str]:
        name = cluster.new_name("kills")
        try:
            yield cluster.create_database(name, template=template)
        finally:
            cluster.drop_database(name)

    while True:
        yield copy()


def _prepare(url: str, clock: TurnableClock | None = None) -> None:
    with closing(open_store(url, clock=clock)) as store:
        store.ready()
    with closing(plain_connection(url)) as connection:
        for table in TABLES:
            connection.execute(table)
        connection.commit()


def declare_deeds(harness: Harness) -> None:
    """Declare what all deeds need."""
    jobs.declare(harness)
    runs.declare(harness)


class Scenes:
    """The scene of the next deed: `current`, until `renew` is called. `covered` is what was reached on all of them.
    `prepare` is called with each. `way` is the way to the database: it is given its URL, and its value is that of the
    way."""

    def __init__(
        self,
        kind: Kind,
        prepare: Callable[[Harness], None] = declare_deeds,
        *,
        cluster: Cluster | None = None,
        way: Callable[[str], AbstractContextManager[str]] = nullcontext,
    ) -> None:
        self._prepare = prepare
        self._way = way
        self._exits = ExitStack()
        self._scene = ExitStack()
        self._databases = self._exits.enter_context(databases(kind, cluster))
        self.covered: Counter[str] = Counter()
        self.current = self._open()

    def _open(self) -> Harness:
        url = self._scene.enter_context(self._way(self._scene.enter_context(next(self._databases))))
        harness = self._scene.enter_context(closing(Harness(url, lease=LEASE)))
        self._prepare(harness)
        return harness

    def renew(self) -> None:
        """Close this scene, and open another."""
        self._close_scene()
        self.current = self._open()

    def _close_scene(self) -> None:
        with self._scene:
            self.covered.update(transitions_of(self.current.url))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._exits:
            self._close_scene()
