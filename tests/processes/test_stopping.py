"""How workers end: asked, asked twice, and without being asked."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

from detent.testing.stores import plain_connection
from tests.deadlines import scaled
from tests.processes.worker_processes import Bench, is_alive, kill, until

WAITING = """SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
             WHERE NOT l.granted AND l.relation = 'detent.horizon'::regclass AND d.datname = current_database()
             ORDER BY l.pid"""


def test_told_to_stop_it_finishes_what_it_has_begun(bench: Bench) -> None:
    """W1: SIGTERM to everybody at once, as service managers send it, stops claiming and finishes within the grace."""
    gate = bench.gate()
    jobs = [bench.send(task, gate=str(gate)) for task in ("hold", "hold_async", "hold_apart")]
    worker = bench.worker(grace=scaled(30.0))
    gate.entered(3)
    for pid in [*worker.descendants(), worker.process.pid]:
        os.kill(pid, signal.SIGTERM)
    until(lambda: any(one.stopping for one in bench.app.workers.list(within=60.0)), "the worker that knows it")
    late = bench.send("add", a=1, b=1)
    gate.open()
    assert worker.ends() == 0
    assert [bench.outcomes(job) for job in jobs] == [["done"]] * 3
    assert bench.app.jobs.get(late.id).state == "pending"
    assert bench.is_healthy()


def test_an_operator_drains_a_worker_from_elsewhere(bench: Bench) -> None:
    """W1, R1: it stops claiming, finishes its job and ends, and says who asked. One signal more changes nothing."""
    gate = bench.gate()
    held = bench.send("hold", gate=str(gate))
    worker = bench.worker(name="w1", grace=scaled(30.0))
    gate.entered()
    (found,) = bench.app.workers.list(within=60.0)
    found.drain(actor="ben", reason="the machine is replaced")
    until(lambda: found.refresh().stopping, "the worker that knows it")
    late = bench.send("add", a=1, b=1)
    worker.signal(signal.SIGTERM)
    gate.open()
    assert worker.ends() == 0
    assert bench.outcomes(held) == ["done"]
    assert bench.app.jobs.get(late.id).state == "pending"
    assert "Worker w1: ben asked it to drain: the machine is replaced.\n" in worker.log
    assert bench.app.workers.list(within=60.0) == []
    assert bench.is_healthy()


def test_after_the_grace_the_rest_is_handed_back_without_using_up_an_attempt(bench: Bench) -> None:
    """W1, J7: what does not end within the grace is released; what must not be repeated blindly is not."""
    gate = bench.gate()
    jobs = [bench.send(task, gate=str(gate)) for task in ("hold", "hold_async", "hold_apart")]
    careful = bench.send("hold_carefully", gate=str(gate))
    worker = bench.worker(grace=scaled(0.2))
    gate.entered(4)
    worker.signal(signal.SIGTERM)
    assert worker.ends() == 0
    for job in jobs:
        assert job.refresh().state == "pending"
        assert (job.row.attempt, job.row.spared) == (1, 1)
        assert bench.outcomes(job) == ["released"]
    assert careful.refresh().state == "quarantined"
    assert bench.outcomes(careful) == ["unknown"]
    assert bench.is_healthy()


def test_what_was_claimed_and_not_begun_is_claimable_at_once(bench: Bench) -> None:
    """W1: a batch was claimed, SIGTERM arrives, and its unbegun rest does not wait for the lease to run out."""
    gate = bench.gate()
    bench.send_many("add", 500, a=1, b=1)
    blocker = bench.send("hold", gate=str(gate))
    behind = bench.send_many("add", 200, a=1, b=1)
    worker = bench.worker(slots=1, lease=600.0, grace=600.0)
    gate.entered()
    until(lambda: len(bench.app.jobs.list(state="running")) > 1, "a reserve")
    worker.signal(signal.SIGTERM)
    until(lambda: len(bench.app.jobs.list(state="running")) == 1, "the rest handed back")
    assert worker.process.poll() is None
    assert blocker.refresh().state == "running"
    assert {bench.app.jobs.get(job.id).state for job in behind} == {"pending"}
    released = [job for job in behind if bench.outcomes(job)]
    assert released
    assert all(set(bench.outcomes(job)) == {"released"} for job in released)
    gate.open()
    assert worker.ends() == 0
    assert bench.is_healthy()


def test_told_twice_it_stops_at_once(bench: Bench) -> None:
    """W1: a second SIGTERM waits for nobody, and still uses up no attempt."""
    said = bench.listen_as_systemd()
    gate = bench.gate()
    jobs = [bench.send(task, gate=str(gate)) for task in ("hold", "hold_async", "hold_apart")]
    worker = bench.worker(grace=600.0, lease=600.0)
    gate.entered(3)
    below = worker.descendants()
    worker.signal(signal.SIGTERM)
    until(lambda: "STOPPING=1" in said(), "the first one heard")
    worker.signal(signal.SIGTERM)
    assert worker.ends() == 0
    assert not any(map(is_alive, below))
    assert [bench.outcomes(job) for job in jobs] == [["released"]] * 3
    assert bench.is_healthy()


def test_nothing_survives_a_killed_supervisor_and_all_settles(bench: Bench) -> None:
    """J6: children, their processes and what those left behind end with the supervisor; another worker takes
    over when the lease has run out."""
    gate = bench.gate()
    jobs = [bench.send(task, gate=str(gate)) for task in ("fork_deaf", "hold_apart", "hold_async")]
    worker = bench.worker(processes=2, slots=2, lease=scaled(1.0))
    gate.entered(3)
    deaf = [int(pid) for pid in Path(f"{gate}.deaf").read_text().split()]
    below = [*worker.descendants(), *deaf]
    kill(worker.process.pid)
    until(lambda: not any(map(is_alive, below)), "the end of everybody below")
    gate.open()
    bench.worker(lease=scaled(1.0))
    for job in jobs:
        bench.rests(job, "succeeded")
        assert bench.outcomes(job) == ["expired", "done"]
    assert bench.is_healthy()


def test_a_killed_child_is_noticed_at_once(bench: Bench) -> None:
    """J7: the job of a child that was killed is tried again without waiting for the lease, and the attempt counts."""
    gate = bench.gate()
    job = bench.send("hold", gate=str(gate))
    bench.worker(lease=600.0)
    (child,) = gate.entered()
    kill(child)
    gate.entered(2)
    gate.open()
    bench.rests(job, "succeeded")
    assert bench.outcomes(job) == ["crashed", "done"]
    assert "SIGKILL" in str(job.executions()[0].error)


def test_a_child_does_not_outlive_its_guardian(sqlite_bench: Bench) -> None:
    bench = sqlite_bench
    gate = bench.gate()
    job = bench.send("hold", gate=str(gate))
    bench.worker(lease=600.0)
    (child,) = gate.entered()
    kill(int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1]))
    until(lambda: not is_alive(child), "its end")
    gate.open()
    bench.rests(job, "succeeded")
    assert bench.outcomes(job) == ["crashed", "done"]


def test_a_service_that_is_held_up_does_not_keep_a_worker_from_ending(postgres_bench: Bench) -> None:
    """W1: drained, or told to stop, while a service waits for somebody's lock: it ends, and the lock is still held."""
    with closing(plain_connection(postgres_bench.url)) as busy:
        busy.execute("LOCK TABLE detent.horizon IN ACCESS EXCLUSIVE MODE")
        job = postgres_bench.send("add", a=1, b=1)
        postgres_bench.drain()
        assert job.refresh().state == "succeeded"
        left_behind = busy.execute(WAITING).fetchall()
        worker = postgres_bench.worker()
        until(lambda: busy.execute(WAITING).fetchall() not in ([], left_behind), "a service that waits")
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
        busy.rollback()
    assert postgres_bench.is_healthy()
