"""The database goes away and comes back, or takes no writes. Workers wait, say so at most once a second, and go on by
themselves; no attempt is used up. `make test`: 3 restarts, a read-only server, a file that is held, and a worker that
starts too early; `make faults`: 20 restarts, and the rest."""

from __future__ import annotations

import os
import resource
import secrets
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from detent.testing.lossy_proxy import Proxy
from detent.testing.postgres import Cluster, find_binaries, start_cluster
from detent.testing.postgres_guardian import free_port
from detent.testing.stores import plain_connection
from tests.faults.ledger import Ring
from tests.faults.load import LEASE, Load, away, unspoilt
from tests.processes.worker_processes import Worker, until


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A server that this test may stop."""
    binaries = find_binaries()
    if not binaries:
        pytest.skip("no binaries of PostgreSQL: a server that this run did not start is not stopped")
    with start_cluster(bin_dir=binaries[0]) as cluster:
        yield cluster


@pytest.fixture
def own_ring(own_cluster: Cluster, tmp_path: Path) -> Iterator[Ring]:
    with Ring(own_cluster.create_database("ring"), tmp_path) as ring:
        yield ring


@pytest.mark.timeout(900)
def test_the_server_crashes_and_comes_back(own_cluster: Cluster, own_ring: Ring, whole: bool) -> None:
    """R4, G1, J7: stopped with -m immediate under load, again and again: every job that was taken is done."""
    workers = [own_ring.worker(name=name, lease=LEASE, slots=4) for name in ("a", "b")]
    with Load(own_ring) as load:
        until(lambda: len(own_ring.ask("SELECT DISTINCT worker FROM {execution}")) == 2, "both at work")
        for number in range(20 if whole else 3):
            sent = len(load.jobs)
            until(lambda sent=sent: len(load.jobs) > sent + 5, "load")  # type: ignore[misc]
            own_cluster.restart(down_for=0.3 * (number % 3))
    own_ring.all_done(load.jobs)
    unspoilt(own_ring, workers)


@pytest.mark.timeout(240)
def test_a_worker_that_starts_before_its_database(postgres_ring: Ring) -> None:
    """W4: it waits, says so, and goes on by itself."""
    job = postgres_ring.send("work", ms=10)
    port = free_port()
    worker = postgres_ring.worker(url=f"postgresql://postgres@127.0.0.1:{port}/{postgres_ring.database}", lease=LEASE)
    until(lambda: worker.log.count("starting failed, trying again") > 1, "a worker that says what it waits for")
    with Proxy(postgres_ring.url, lambda _: None, port):
        postgres_ring.all_done([job.id])
        unspoilt(postgres_ring, [worker])
        worker.close()


def test_a_worker_that_is_not_let_in_ends(postgres_ring: Ring) -> None:
    """W4: what waiting does not help ends it at once, and is said clearly."""
    nobody = postgres_ring.url.replace("//postgres@", "//nobody-of-that-name@")
    for url in (nobody, f"{postgres_ring.url}-not", "sqlite:////not/there/at.all"):
        worker = postgres_ring.worker(url=url)
        assert worker.ends() != 0
        assert "the database cannot be reached" in worker.log.splitlines()[-1]
        assert "trying again" not in worker.log


def as_owner(url: str, *statements: str) -> None:
    """Said to the server beside the database, which may be closed to everybody."""
    with closing(plain_connection(url.rpartition("/")[0] + "/postgres")) as connection:
        connection.autocommit = True
        for statement in statements:
            connection.execute(statement)


def cut_off(database: str) -> str:
    """A statement that ends every connection to a database."""
    return f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{database}'"


@pytest.mark.timeout(240)
def test_a_server_that_turns_read_only(postgres_ring: Ring) -> None:
    """R4, J7: as after a fail-over to a standby."""
    name = postgres_ring.database
    change = f'ALTER DATABASE "{name}"'
    away(
        postgres_ring,
        lambda: as_owner(postgres_ring.url, f"{change} SET default_transaction_read_only = on", cut_off(name)),
        lambda: as_owner(postgres_ring.url, f"{change} RESET default_transaction_read_only"),
        "takes no writes",
    )


@pytest.mark.timeout(240)
def test_a_server_without_a_connection_to_give(postgres_cluster: Cluster, tmp_path: Path, only_whole: None) -> None:
    """R4, J7: too many connections, for a while."""
    name = f"detent_clerk_{secrets.token_hex(4)}"
    as_owner(postgres_cluster.url, f"CREATE ROLE {name} LOGIN", f"CREATE DATABASE {name} OWNER {name}")
    url = postgres_cluster.url_of(name)
    try:
        with Ring(url.replace("//postgres@", f"//{name}@"), tmp_path) as ring:
            away(
                ring,
                lambda: as_owner(url, f"ALTER ROLE {name} CONNECTION LIMIT 0", cut_off(name)),
                lambda: as_owner(url, f"ALTER ROLE {name} CONNECTION LIMIT -1"),
                "too many connections",
            )
    finally:
        as_owner(url, f"DROP DATABASE {name} WITH (FORCE)", f"DROP ROLE {name}")


@pytest.mark.timeout(240)
def test_a_file_that_somebody_else_holds(sqlite_ring: Ring) -> None:
    """R4, J7: database is locked, for many leases: each of them runs out, and no holder loses an attempt by it."""
    with closing(sqlite3.connect(sqlite_ring.url.removeprefix("sqlite:///"), isolation_level=None)) as holder:
        away(
            sqlite_ring,
            lambda: patiently(lambda: holder.execute("BEGIN IMMEDIATE")),
            lambda: patiently(lambda: holder.execute("COMMIT")),
            "is busy",
        )


@pytest.mark.timeout(240)
def test_files_that_cannot_grow(sqlite_ring: Ring) -> None:
    """R4, J7, G6: as on a full disk, for which only root could make a file system. Workers logged up to 9 lines in a
    second: each process counted for itself, and some loops did not count at all."""
    worker = sqlite_ring.worker(lease=LEASE, slots=4, processes=3)
    with Load(sqlite_ring) as load:
        until(lambda: sqlite_ring.states().get("succeeded"), "the first success")
        limit(worker, 64 * 1024)
        until(lambda: len(seconds_with_complaints(worker)) > 3, "complaints for some seconds")
        limit(worker, resource.RLIM_INFINITY)
        done = sqlite_ring.states()["succeeded"]
        until(lambda: sqlite_ring.states()["succeeded"] > done + 5, "jobs that are done again")
    sqlite_ring.all_done(load.jobs)
    unspoilt(sqlite_ring, [worker])


def limit(worker: Worker, size: int) -> None:
    """Let no process of the worker write beyond that many bytes of a file."""
    for pid in [worker.process.pid, *worker.descendants()]:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def seconds_with_complaints(worker: Worker) -> set[str]:
    return {line[:19] for line in worker.log.splitlines() if " WARNING " in line}


@pytest.mark.timeout(240)
def test_a_disk_that_is_full(small_disk: Path, tmp_path: Path, only_whole: None) -> None:
    """R4, J7: SQLite on a disk without room; room is made, and everything goes on."""
    with Ring(f"sqlite:///{small_disk}/ring.db", tmp_path) as ring:
        away(ring, lambda: fill(small_disk), lambda: (small_disk / "ballast").unlink(), "full")


@pytest.mark.timeout(240)
def test_a_disk_that_is_full_below_a_server(
    own_cluster: Cluster, small_disk: Path, tmp_path: Path, only_whole: None
) -> None:
    """R4, J7: the same with PostgreSQL, whose log has room and whose tables have none."""
    assert own_cluster.home is not None
    owner = own_cluster.home.stat()
    place = small_disk / "tables"
    place.mkdir()
    os.chown(place, owner.st_uid, owner.st_gid)
    as_owner(own_cluster.url, f"CREATE TABLESPACE small LOCATION '{place}'", "CREATE DATABASE ring TABLESPACE small")
    with Ring(own_cluster.url_of("ring"), tmp_path) as ring:
        away(ring, lambda: fill(small_disk), lambda: (small_disk / "ballast").unlink(), "No space left")


def fill(disk: Path) -> None:
    """Until nothing more goes in."""
    with suppress(OSError), (disk / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def patiently(ask: Callable[[], object]) -> None:
    def done() -> bool:
        with suppress(sqlite3.OperationalError):
            ask()
            return True
        return False

    until(done, "the lock")


@pytest.fixture
def only_whole(whole: bool) -> None:
    if not whole:
        pytest.skip("part of make faults")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MB, in memory. Only root can make one."""
    disk = Path(tempfile.mkdtemp(prefix="detent-disk-"))
    disk.chmod(0o755)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", disk], capture_output=True, check=False)
    if made.returncode:
        disk.rmdir()
        pytest.skip("not allowed to mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)
    disk.rmdir()
