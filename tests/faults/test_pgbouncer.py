"""All of it through PgBouncer in transaction mode, where no two statements need meet the same connection. `make test`
and `make faults` run all of it; without pgbouncer on the machine it is counted as skipped."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from detent.store.postgres.driver.connection_pool import ConnectionPool
from detent.testing.postgres import Cluster
from tests.faults.ledger import Ring
from tests.faults.load import LEASE, unspoilt
from tests.faults.servers import pgbouncer
from tests.faults.tasks import make_app

CONNECTIONS = 4
"""Of PgBouncer to the server: fewer than one worker opens, so that everybody shares them."""

MANY = 8


@pytest.fixture
def bounced(postgres_cluster: Cluster, tmp_path: Path) -> Iterator[Ring]:
    """A ring whose every connection, also the one that makes the schema, goes through PgBouncer."""
    name = f"detent_bounced_{secrets.token_hex(4)}"
    postgres_cluster.create_database(name)
    try:
        with pgbouncer(postgres_cluster, pool_size=CONNECTIONS) as url, Ring(f"{url}{name}", tmp_path) as ring:
            yield ring
    finally:
        postgres_cluster.drop_database(name)


@pytest.mark.timeout(240)
def test_workers_and_clients_behind_a_pooler(bounced: Ring) -> None:
    """W4, C1, J2: no session state anywhere: claims, commit blocks, renewals, keys, schedules' services, wake-ups by
    polling."""
    workers = [bounced.worker(name=name, slots=8, lease=LEASE) for name in ("a", "b")]
    jobs = [bounced.send(("work", "work_async")[n % 2], ms=20).id for n in range(60)]
    bounced.all_done(jobs)
    # Everybody is idle now: the next job is found by looking, since no notification comes through.
    late = bounced.app.enqueue(bounced.app.find_task("work").call(ms=1), key="late")
    assert bounced.app.enqueue(bounced.app.find_task("work").call(ms=1), key="late").id == late.id
    bounced.all_done([*jobs, late.id])
    unspoilt(bounced, workers)


def test_nothing_is_prepared_behind_a_pooler(bounced: Ring) -> None:
    """What one session prepared, another would not know: a pooler is noticed, whatever it is called."""
    with (
        closing(ConnectionPool(bounced.url, "bounced", size_max=1, wait_seconds_max=5.0)) as pool,
        pool.connection() as behind,
    ):
        assert behind.direct is None
        assert behind.prepare_threshold is None


@pytest.mark.timeout(240)
def test_a_worker_killed_behind_a_pooler(bounced: Ring) -> None:
    """G1, G5: its connections are PgBouncer's, and live on."""
    gate = bounced.gate()
    call = bounced.app.find_task("stop_at").call(moment="in the block", gate=str(gate))
    job = bounced.app.enqueue(call)
    victim = bounced.worker(name="victim", lease=LEASE)
    gate.entered()
    heir = bounced.worker(name="heir", lease=LEASE)
    victim.close()
    bounced.all_done([job.id])
    assert bounced.outcomes(job) == ["expired", "done"]
    assert heir.process.poll() is None


@pytest.mark.timeout(240)
def test_the_command_line_behind_a_pooler(bounced: Ring) -> None:
    """U2"""
    job = bounced.send("work", ms=1)
    bounced.drain(app="tests.faults.tasks:app")
    for told in (["jobs", "get", str(job.id)], ["jobs", "list"], ["doctor"], ["verify"], ["migrate", "--check"]):
        ran = bounced.cli(*told)
        assert ran.returncode == 0, (told, ran.stdout, ran.stderr)


@pytest.mark.timeout(240)
def test_many_migrate_at_once_behind_a_pooler(postgres_cluster: Cluster, tmp_path: Path) -> None:
    """L8: the lock that lets one go first belongs to a transaction, not to a session."""
    name = f"detent_bounced_{secrets.token_hex(4)}"
    postgres_cluster.create_database(name)
    errors: list[BaseException] = []

    def touch(url: str) -> None:
        try:
            with make_app(url) as app:
                app.enqueue(app.find_task("report").call())
        except BaseException as error:
            errors.append(error)

    try:
        # As many as stand in line for the lock: whoever found none left would be told so after a while.
        with pgbouncer(postgres_cluster, pool_size=2 * MANY) as url:
            threads = [threading.Thread(target=touch, args=(f"{url}{name}",)) for _ in range(MANY)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert errors == []
            with make_app(f"{url}{name}") as app:
                assert app.jobs.where(state="pending").count() == MANY
    finally:
        postgres_cluster.drop_database(name)
