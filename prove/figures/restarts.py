"""P4: a PostgreSQL server that stops at once and starts again under load, and standbys that take its place."""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from detent.testing.postgres import Cluster, find_binaries, start_cluster
from prove.coverage import fault_points, transitions_of
from prove.figure import Budget, Tally
from tests.faults.ledger import Ring
from tests.faults.load import LEASE, Load, unspoilt
from tests.faults.servers import standby_of
from tests.processes.worker_processes import Worker, until

__all__ = ["FAIL_OVER", "RESTART", "fail_overs", "restarts", "run"]

RESTART = "restart of the server"
FAIL_OVER = "fail-over to a standby"
_OF_RESTARTS = 0.75
"""The share of the time, if there are fail-overs too."""
_RING_RESTARTS = 50
"""Number of restarts after which a new database is used, so that a finding tells when it happened."""
_DOWN_SECONDS = (0.0, 0.3, 0.6)
_BETWEEN = 5
"""How many jobs are accepted between two restarts at least."""
_ENDED_SECONDS_MAX = 120.0


def run(budget: Budget) -> Tally:
    """Restart, and then fail over, as often as the tier says or until the time is up."""
    tally = Tally()
    binaries = find_binaries()
    if not binaries:
        tally.wrong += 1
        tally.stories.append("there are no binaries of PostgreSQL here, so no server can be restarted")
        return tally
    least = budget.count(commit=0, nightly=5, release=20)
    part = replace(budget, seconds=budget.seconds * (_OF_RESTARTS if least else 1.0))
    tally.add(restarts(part, binaries[0], most=budget.count(commit=3, nightly=200, release=1_000)))
    if least:
        tally.add(fail_overs(budget, most=least))
    return tally


def restarts(budget: Budget, bin_dir: Path, *, most: int) -> Tally:
    """Stop a server of our own with `pg_ctl stop -m immediate` and start it again, while clients send jobs and two
    workers work on them."""
    tally, chance, times = Tally(), random.Random(budget.seed), list[float]()
    with start_cluster(bin_dir=bin_dir) as cluster:
        while len(times) < most and not (budget.is_spent and times) and tally.is_clean:
            story = f"restarts from number {len(times) + 1}"
            with _ring(cluster.create_database(f"ring{len(times)}")) as ring, _told(tally, story):
                workers = [ring.worker(name=name, lease=LEASE, slots=4) for name in ("left", "right")]
                with Load(ring) as load:
                    until(lambda: len(ring.ask("SELECT DISTINCT worker FROM {execution}")) == 2, "both at work")
                    for _ in range(min(_RING_RESTARTS, most - len(times))):
                        _wait_for_load(load)
                        times.append(_restarted(cluster, ring, load, chance.choice(_DOWN_SECONDS)))
                        if budget.is_spent:
                            break
                _look(ring, load, workers, tally, story)
    return _counted(tally, RESTART, times, f"seed {budget.seed}")


def fail_overs(budget: Budget, *, most: int) -> Tally:
    """Stop a server for good, and promote its standby. Workers and clients name both."""
    tally, times = Tally(), list[float]()
    if not any((one / "pg_basebackup").exists() for one in find_binaries()):
        tally.notes.append("there is no pg_basebackup here, so there were no fail-overs")
        return tally
    while len(times) < most and not (budget.is_spent and times) and tally.is_clean:
        story = f"fail-over {len(times) + 1}"
        with start_cluster(bin_dir=find_binaries()[0]) as primary, _told(tally, story):
            primary.create_database("ring")
            with standby_of(primary) as standby:
                hosts = f"127.0.0.1:{urlsplit(primary.url).port},127.0.0.1:{standby.port}"
                with _ring(f"postgresql://postgres@{hosts}/ring?target_session_attrs=read-write") as ring:
                    workers = [ring.worker(name=name, slots=4, lease=LEASE) for name in ("left", "right")]
                    with Load(ring) as load:
                        until(lambda: ring.states().get("succeeded"), "the first success")
                        _wait_for_load(load)
                        primary.stop()
                        standby.promote()
                        times.append(_recovery(ring, load))
                        _wait_for_load(load)
                    _look(ring, load, workers, tally, story)
    return _counted(tally, FAIL_OVER, times, "")


@contextmanager
def _ring(url: str) -> Iterator[Ring]:
    with tempfile.TemporaryDirectory(prefix="detent-restarts-") as folder, Ring(url, Path(folder)) as ring:
        yield ring


@contextmanager
def _told(tally: Tally, story: str) -> Iterator[None]:
    """Count a condition that was not met in time."""
    try:
        yield
    except AssertionError as error:
        tally.stuck += 1
        tally.stories.append(f"{story}: {error}")


def _wait_for_load(load: Load) -> None:
    sent = len(load.jobs)
    until(lambda: len(load.jobs) > sent + _BETWEEN, "jobs that are accepted")


def _restarted(cluster: Cluster, ring: Ring, load: Load, down_for: float) -> float:
    cluster.restart(down_for=down_for)
    return _recovery(ring, load)


def _recovery(ring: Ring, load: Load) -> float:
    """Wait until a job has succeeded that was accepted from now on. Return for how long."""
    began_at, sent = time.monotonic(), len(load.jobs)

    def is_done() -> bool:
        new = ",".join(map(str, load.jobs[sent:]))
        return bool(new and ring.ask(f"SELECT 1 FROM {{job}} WHERE state = 'succeeded' AND id IN ({new}) LIMIT 1"))

    until(is_done, "a job that was accepted after that and has succeeded")
    return time.monotonic() - began_at


def _look(ring: Ring, load: Load, workers: list[Worker], tally: Tally, story: str) -> None:
    """Every job that was accepted succeeds with one effect, no attempt is used up, and no process had to be started
    again."""

    def say(kind: str, what: str) -> None:
        setattr(tally, kind, getattr(tally, kind) + 1)
        tally.stories.append(f"{story}: {what}")

    deadline = time.monotonic() + _ENDED_SECONDS_MAX
    while ring.ask("SELECT 1 FROM {job} WHERE state IN ('pending', 'running') LIMIT 1") and time.monotonic() < deadline:
        time.sleep(0.1)
    states = {job_id: str(state) for job_id, state in ring.ask("SELECT id, state FROM {job}")}
    ledger = ring.ledger()
    for job_id in load.jobs:
        state = states.get(job_id)
        if state is None:
            say("lost", f"job {job_id} was accepted and is gone")
        elif state in ("pending", "running"):
            say("stuck", f"job {job_id} is {state}")
        elif state != "succeeded":
            say("wrong", f"job {job_id} is {state}")
        elif not ledger[job_id]:
            say("lost", f"job {job_id} has succeeded and has no effect")
    for job_id, rows in ledger.items():
        if rows > 1:
            say("doubled", f"job {job_id} has left {rows} rows")
    try:
        unspoilt(ring, workers)
    except AssertionError as error:
        say("wrong", f"a process had to be started again, or an attempt was used up: {error}")
    for violation in ring.app.record.verify():
        say("wrong", f"verify: {violation}")
    tally.covered.update(transitions_of(ring.url))


def _counted(tally: Tally, fault: str, times: list[float], seed: str) -> Tally:
    tally.injected[fault] += len(times)
    tally.covered.update({point: len(times) for point in fault_points(fault)})
    if times:
        ordered = sorted(times)
        p50, p99 = (ordered[max(0, math.ceil(share * len(ordered)) - 1)] for share in (0.5, 0.99))
        text = f"{fault}: work again after {p50:.1f} s (p50), {p99:.1f} s (p99), {ordered[-1]:.1f} s (max)"
        tally.notes.append(f"{text}, {seed}" if seed else text)
    return tally
