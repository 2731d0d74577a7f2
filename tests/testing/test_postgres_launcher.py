"""The launcher gives a real server and takes everything away again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from detent.testing import postgres
from detent.testing.postgres import Cluster, PostgresUnavailable, find_binaries, start_cluster
from tests.deadlines import until

OWNER = """
import sys
from pathlib import Path
from tests.deadlines import until
from detent.testing.postgres import start_cluster
cluster = start_cluster(bin_dir=Path(sys.argv[1]))
print(cluster.home, flush=True)
sys.stdin.read()
"""


def newest_binaries() -> Path:
    return find_binaries()[0]


def server_pid(home: Path) -> int:
    return int((home / "data" / "postmaster.pid").read_text().splitlines()[0])


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def one_value(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize("bin_dir", find_binaries(), ids=lambda path: f"PostgreSQL {postgres.major_version(path)}")
def test_a_server_starts_serves_and_leaves_nothing(bin_dir: Path) -> None:
    with start_cluster(bin_dir=bin_dir) as cluster:
        assert cluster.home is not None
        pid = server_pid(cluster.home)
        url = cluster.create_database("shop")
        assert one_value(url, "SELECT current_database()") == "shop"
        assert int(str(one_value(url, "SHOW server_version_num"))) // 10_000 == postgres.major_version(bin_dir)
        assert one_value(url, "SHOW server_encoding") == "UTF8"
        assert one_value(f"postgresql://postgres@/shop?host={cluster.home}&port={port_of(url)}", "SELECT 1") == 1
    assert not is_running(pid)
    assert not cluster.home.exists()


def port_of(url: str) -> int:
    port = psycopg.conninfo.conninfo_to_dict(url)["port"]
    return int(str(port))


def test_a_second_stop_does_nothing() -> None:
    cluster = start_cluster(bin_dir=newest_binaries())
    cluster.stop()
    cluster.stop()
    assert cluster.home is not None
    assert not cluster.home.exists()


def test_an_owner_that_is_killed_leaves_no_process_and_no_file() -> None:
    command = [sys.executable, "-c", OWNER, str(newest_binaries())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        home = Path(owner.stdout.readline().strip())
        pid = server_pid(home)
        assert is_running(pid)
        owner.send_signal(signal.SIGKILL)
    until(lambda: not is_running(pid) and not home.exists())


def test_fsync_is_off_unless_asked_for() -> None:
    with start_cluster(bin_dir=newest_binaries()) as quick:
        assert one_value(quick.url, "SHOW fsync") == "off"
    with start_cluster(bin_dir=newest_binaries(), fsync=True) as durable:
        assert one_value(durable.url, "SHOW fsync") == "on"
        assert one_value(durable.create_database("shop"), "SELECT 1") == 1


def test_a_running_server_is_used_and_left_as_it_was(
    postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(postgres.URL_VARIABLE, postgres_cluster.url)
    with start_cluster() as cluster:
        assert cluster.home is None
        url = cluster.create_database("a name with spaces/and a slash")
        assert one_value(url, "SELECT current_database()") == "a name with spaces/and a slash"
    left = one_value(postgres_cluster.url, "SELECT count(*) FROM pg_database WHERE datname LIKE 'a name with%'")
    assert left == 0


def test_a_database_is_dropped_together_with_its_connections(postgres_cluster: Cluster) -> None:
    name = f"dropped_{os.getpid()}"
    url = postgres_cluster.create_database(name)
    with psycopg.connect(url) as connection:
        postgres_cluster.drop_database(name)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    postgres_cluster.drop_database(name)


def test_a_database_is_a_copy_of_its_template(postgres_cluster: Cluster, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    template = str(psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"])
    url = postgres_cluster.create_database(f"copy_{os.getpid()}", template=template)
    assert one_value(url, "SELECT n FROM kept") == 42
    postgres_cluster.drop_database(f"copy_{os.getpid()}")


def test_binaries_that_do_not_work_are_refused_with_what_they_said(tmp_path: Path) -> None:
    bin_dir = tmp_path / "package" / "install" / "bin"
    bin_dir.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        program = bin_dir / name
        program.write_text("#!/bin/sh\necho 'the tablespace is haunted'\nexit 1\n")
        program.chmod(0o755)
    with pytest.raises(PostgresUnavailable, match="the tablespace is haunted"):
        start_cluster(bin_dir=bin_dir)


def test_nothing_to_start_is_refused_with_what_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(postgres.URL_VARIABLE, raising=False)
    monkeypatch.setattr(postgres, "VERSION_MIN", 999)
    with pytest.raises(PostgresUnavailable, match="DETENT_TEST_DATABASE_URL"):
        start_cluster()


def test_each_test_has_a_database_of_its_own(database_url: str) -> None:
    scheme, _, rest = database_url.partition("://")
    if scheme == "postgresql":
        assert one_value(database_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    else:
        assert scheme == "sqlite"
        assert not Path(rest).exists()
