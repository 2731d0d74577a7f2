"""The database goes away and comes back, or takes no writes. Workers wait, say so at most once a second, and go on by
themselves; no attempt is used up. `make faults-slice`: 3 restarts and a read-only server; `make faults`: 20 restarts,
and the rest."""

from __future__ import annotations

import os
import secrets
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from detent.errors import DatabaseError
from detent.testing.postgres import Cluster, find_binaries, start_cluster
from detent.testing.stores import plain_connection
from tests.faults.kit import Ring
from tests.processes.kit import Worker, until

LEASE = 2.0
TAKEN_SECONDS_MAX = 60.0


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A server that this test may stop."""
    binaries = find_binaries()
    if not binaries:
        pytest.skip("no binaries of PostgreSQL: a server that belongs to somebody else is not stopped")
    with start_cluster(bin_dir=binaries[0]) as cluster:
        yield cluster


@pytest.fixture
def own_ring(own_cluster: Cluster, tmp_path: Path) -> Iterator[Ring]:
    with Ring(own_cluster.create_database("ring"), tmp_path) as ring:
        yield ring


class Load:
    """Sends jobs under keys, again and again until each is taken, as a careful client does."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self.jobs: list[int] = []

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _send(self) -> None:
        work = self._ring.app.find_task("work")
        while not self._over.wait(0.05):
            key = secrets.token_hex(8)
            deadline = time.monotonic() + TAKEN_SECONDS_MAX
            while time.monotonic() < deadline:
                with suppress(DatabaseError):
                    self.jobs.append(self._ring.app.enqueue(work.call(ms=100), key=key).id)
                    break
                self._over.wait(0.05)


def speaks_softly(worker: Worker) -> None:
    """At most one complaint a second from each of its two processes, supervisor and child: between two full seconds
    there may be two of each."""
    complaints = Counter(line[:19] for line in worker.log.splitlines() if " WARNING " in line or " ERROR " in line)
    assert all(count <= 4 for count in complaints.values()), worker.log


def unspoilt(ring: Ring, workers: list[Worker]) -> None:
    """Nobody had to be started again, and no attempt was used up."""
    for worker in workers:
        assert worker.process.poll() is None, worker.log[-3000:]
        speaks_softly(worker)
    used_up = ring.ask("SELECT outcome, error FROM {execution} WHERE counted AND outcome <> 'done'")
    assert used_up == []


def away(ring: Ring, stop: Callable[[], None], go_on: Callable[[], None], says: str) -> None:
    """Let the database refuse writes under load until a worker has said so; then let it go on."""
    worker = ring.worker(lease=LEASE, slots=4)
    with Load(ring) as load:
        until(lambda: ring.states().get("succeeded"), "the first success")
        stop()
        try:
            until(lambda: says in worker.log, f"a worker that says: {says}")
        finally:
            go_on()
        taken = len(load.jobs)
        until(lambda: len(load.jobs) > taken + 5, "jobs that are taken again")
    ring.all_done(load.jobs)
    unspoilt(ring, [worker])


@pytest.mark.timeout(900)
def test_the_server_crashes_and_comes_back(own_cluster: Cluster, own_ring: Ring, whole: bool) -> None:
    """R4, G1, J7: stopped with -m immediate under load, again and again: every job that was taken is done."""
    workers = [own_ring.worker(name=name, lease=LEASE, slots=4) for name in ("a", "b")]
    with Load(own_ring) as load:
        # One that starts while the database is away ends at once and says so; these are to be at work.
        until(lambda: len(own_ring.ask("SELECT DISTINCT worker FROM {execution}")) == 2, "both at work")
        for number in range(20 if whole else 3):
            sent = len(load.jobs)
            until(lambda sent=sent: len(load.jobs) > sent + 5, "load")  # type: ignore[misc]
            own_cluster.restart(down_for=0.3 * (number % 3))
    own_ring.all_done(load.jobs)
    unspoilt(own_ring, workers)


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
    name = postgres_ring.url.rpartition("/")[2]
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


@pytest.mark.xfail(strict=False, reason="seen to use up attempts: some leases are reaped before their holder renews")
@pytest.mark.timeout(240)
def test_a_file_that_somebody_else_holds(sqlite_ring: Ring, only_whole: None) -> None:
    """R4, J7: database is locked."""
    with closing(sqlite3.connect(sqlite_ring.url.removeprefix("sqlite:///"), isolation_level=None)) as holder:
        away(
            sqlite_ring,
            lambda: patiently(lambda: holder.execute("BEGIN IMMEDIATE")),
            lambda: patiently(lambda: holder.execute("COMMIT")),
            "is busy",
        )


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
