"""The server dies for good, and its standby takes its place. `make test` and `make faults` run all of it; without
`pg_basebackup` on the machine it is counted as skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from detent.testing.postgres import Cluster, find_binaries, start_cluster
from tests.faults.ledger import Ring
from tests.faults.load import LEASE, Load, unspoilt
from tests.faults.servers import Standby, standby_of
from tests.processes.worker_processes import is_alive, until


@pytest.fixture
def primary() -> Iterator[Cluster]:
    """A server that this test may lose."""
    binaries = find_binaries()
    if not binaries:
        pytest.skip("no binaries of PostgreSQL")
    with start_cluster(bin_dir=binaries[0]) as cluster:
        cluster.create_database("ring")
        yield cluster


@pytest.fixture
def standby(primary: Cluster) -> Iterator[Standby]:
    with standby_of(primary) as one:
        yield one


@pytest.mark.timeout(240)
def test_fail_over_under_load(primary: Cluster, standby: Standby, tmp_path: Path) -> None:
    """W4, G1, J7: workers and clients name both servers and ask for the one that takes writes. All that was taken is
    done, nobody is started by hand, and no attempt is used up. One worker knows the standby alone, and waits for it."""
    hosts = f"127.0.0.1:{urlsplit(primary.url).port},127.0.0.1:{standby.port}"
    with Ring(f"postgresql://postgres@{hosts}/ring?target_session_attrs=read-write", tmp_path) as ring:
        early = ring.worker(name="early", url=f"postgresql://postgres@127.0.0.1:{standby.port}/ring", lease=LEASE)
        workers = [ring.worker(name=name, slots=4, lease=LEASE) for name in ("a", "b")]
        with Load(ring) as load:
            until(lambda: ring.states().get("succeeded"), "the first success")
            until(lambda: "takes no writes" in early.log, "a worker that says that the standby takes no writes")
            primary.stop()
            for worker in workers:
                until(lambda: "trying again" in worker.log, "a worker that says so")  # noqa: B023
            standby.promote()
            taken = len(load.jobs)
            until(lambda: len(load.jobs) > taken + 20, "jobs that are taken again")
        ring.all_done(load.jobs)
        unspoilt(ring, [*workers, early])
        # A child outlives its supervisor for a moment, in which it may claim.
        processes = [pid for worker in workers for pid in worker.descendants()]
        for worker in workers:
            worker.close()
        until(lambda: not any(map(is_alive, processes)), "the end of the others")
        last = ring.rests(ring.send("work", ms=1), "succeeded")
        assert [one.worker for one in last.executions()] == ["early"]
