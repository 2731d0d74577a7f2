"""Other programs between Detent and its database, or beside it: PgBouncer, and a streaming standby.

Each runs as an account that is allowed to run it, in a directory of its own, and ends with its `with`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from detent.testing.postgres import CONNECTIONS_MAX, Cluster, find_binaries
from detent.testing.postgres_guardian import free_port, spawn, stop, unprivileged_account
from detent.testing.stores import plain_connection
from tests.deadlines import scaled
from tests.processes.worker_processes import until

_SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"


@contextmanager
def _home() -> Iterator[Path]:
    """A directory that the account of the program may write to."""
    account = unprivileged_account()
    home = Path(tempfile.mkdtemp(prefix="detent-beside-"))
    try:
        if account is not None:
            os.chown(home, account.pw_uid, account.pw_gid)
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def pgbouncer(cluster: Cluster, *, pool_size: int) -> Iterator[str]:
    """PgBouncer in transaction mode before a server; a url up to the database's name."""
    program = shutil.which("pgbouncer", path=_SYSTEM)
    if program is None:
        pytest.skip("no pgbouncer on this machine")
    server, port = urlsplit(cluster.url), free_port()
    with _home() as home:
        (home / "bouncer.ini").write_text(
            f"""
[databases]
* = host=127.0.0.1 port={server.port} user={server.username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 500
"""
        )
        (home / "bouncer.ini").chmod(0o644)
        process = spawn([program, str(home / "bouncer.ini")], home, unprivileged_account(), home / "log")
        try:
            until(lambda: _listens(port), "a PgBouncer that listens")
            yield f"postgresql://{server.username}@127.0.0.1:{port}/"
        finally:
            stop(process)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


class Standby:
    """A server that follows another."""

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        self.url = url
        """Of its database `postgres`."""
        self._process = process

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def promote(self) -> None:
        """From now on it takes writes."""
        with closing(plain_connection(self.url)) as connection:
            connection.autocommit = True
            assert connection.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)


@contextmanager
def standby_of(cluster: Cluster) -> Iterator[Standby]:
    """A streaming standby. From when this is entered the cluster waits with every commit until the standby has it."""
    binaries = next((one for one in find_binaries() if (one / "pg_basebackup").exists()), None)
    if binaries is None:
        pytest.skip("no pg_basebackup on this machine")
    account, port = unprivileged_account(), free_port()
    with _home() as home:
        data = home / "data"
        copying = [
            str(binaries / "pg_basebackup"),
            "-d",
            cluster.url,
            "-D",
            str(data),
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
        ]
        with spawn(copying, home, account, home / "log") as copy:
            assert copy.wait(scaled(60)) == 0, (home / "log").read_text()
        options = {
            "port": str(port),
            "unix_socket_directories": str(home),
            "listen_addresses": "127.0.0.1",
            "fsync": "off",
            "max_connections": str(CONNECTIONS_MAX),
        }
        flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        process = spawn([str(binaries / "postgres"), "-D", str(data), *flags], home, account, home / "log")
        try:
            # A standby never says that it is ready for everything: only that it takes readers.
            until(lambda: _listens(port) or process.poll() is not None, "a standby that listens")
            with closing(plain_connection(cluster.url)) as primary:
                primary.autocommit = True
                primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                primary.execute("SELECT pg_reload_conf()")
                following = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
                until(lambda: primary.execute(following).fetchone(), "a standby that follows")
            yield Standby(f"postgresql://postgres@127.0.0.1:{port}/postgres", process)
        finally:
            stop(process)
