"""Workers that stand still for three leases and then go on. `make test` and `make faults` run all of it."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from detent.client.job import Job
from tests.deadlines import scaled
from tests.faults.gated import GATE, MOMENT
from tests.faults.ledger import Ring
from tests.processes.worker_processes import Gate, Worker, until

LEASE = scaled(1.0)
IN_THE_STORE = ("claimed", "finishing")
MOMENTS = ("claimed", "started", "in the block", "committed", "finishing")


class Zombie:
    """A worker with one job, at one moment of the job's life."""

    def __init__(self, ring: Ring, moment: str) -> None:
        self.moment = moment
        self.gate: Gate = ring.gate()
        task = "report" if moment == "finishing" else "stop_at"
        arguments = {} if moment == "finishing" else {"moment": moment, "gate": str(self.gate)}
        queue = moment.replace(" ", "-")
        self.job: Job[Any] = ring.app.enqueue(ring.app.find_task(task).call(**arguments), queue=queue)
        gated = {MOMENT: moment, GATE: str(self.gate)} if moment in IN_THE_STORE else {}
        self.worker: Worker = ring.worker(
            name=queue, queues=(queue,), slots=1, lease=LEASE, app="tests.faults.gated:app", environment=gated
        )

    def stop(self) -> None:
        self.gate.entered()
        self.everybody(signal.SIGSTOP)

    def go_on(self) -> None:
        self.gate.open()
        self.everybody(signal.SIGCONT)

    def everybody(self, number: int) -> None:
        for pid in (self.worker.process.pid, *self.worker.descendants()):
            os.kill(pid, number)


def one_effect(ring: Ring, zombie: Zombie) -> None:
    """The job succeeded, and what it left was left by the attempt that is on record as the one that did."""
    ring.rests(zombie.job, "succeeded")
    *before, last = zombie.job.executions()
    assert last.outcome == "done", zombie.moment
    # A block on a file is cut off when it is open for too long, and says so.
    cut_off = {"error"} if zombie.moment == "in the block" else set()
    assert {one.outcome for one in before} <= {"expired", "released"} | cut_off, (zombie.moment, before)
    if zombie.moment == "finishing":
        assert zombie.job.result == f"attempt {last.attempt}"
    else:
        rows = ring.ask(f"SELECT attempt FROM ledger WHERE job_id = {zombie.job.id}")
        assert rows == [(last.attempt,)], zombie.moment


def stand_still(ring: Ring, moments: tuple[str, ...]) -> dict[str, Zombie]:
    """All of them stop at their moments for three leases, while another worker is there; then they go on."""
    zombies = [Zombie(ring, moment) for moment in moments]
    try:
        for zombie in zombies:
            zombie.stop()
        began = time.monotonic()
        heir = ring.worker(name="heir", lease=LEASE)
        until(lambda: time.monotonic() > began + 3 * LEASE, "three leases")
        if not ring.url.startswith("sqlite"):
            # Whoever stands still may hold the lock of a file, so that nobody can take over; on a server others go on.
            for zombie in zombies:
                ring.rests(zombie.job, "succeeded")
    finally:
        # Also where the test has failed: whoever stands still does not see that his supervisor is gone.
        for zombie in zombies:
            zombie.go_on()
    for zombie in zombies:
        one_effect(ring, zombie)
    for worker in (heir, *(zombie.worker for zombie in zombies)):
        worker.signal(signal.SIGTERM)
    # An heir that could not come up yet, since the file was held, has nothing to hand back: the signal itself ends it.
    assert heir.ends() in (0, -signal.SIGTERM)
    for zombie in zombies:
        assert zombie.worker.ends() == 0
    for zombie in zombies:
        one_effect(ring, zombie)
    assert ring.is_healthy()
    return {zombie.moment: zombie for zombie in zombies}


@pytest.mark.timeout(240)
def test_who_stood_still_beyond_his_lease_is_powerless(postgres_ring: Ring) -> None:
    """G3, J5: taken over where nothing was committed, brought to its end where it was; the late writes are refused."""
    zombies = stand_still(postgres_ring, MOMENTS)
    outcomes = {moment: postgres_ring.outcomes(zombie.job) for moment, zombie in zombies.items()}
    assert outcomes == {
        "claimed": ["expired", "done"],
        "started": ["expired", "done"],
        "in the block": ["expired", "done"],
        "committed": ["done"],
        "finishing": ["expired", "done"],
    }


@pytest.mark.timeout(240)
def test_who_stood_still_beyond_his_lease_is_powerless_on_a_file(sqlite_ring: Ring) -> None:
    """G3, J5: the same on SQLite."""
    stand_still(sqlite_ring, tuple(moment for moment in MOMENTS if moment != "in the block"))


@pytest.mark.timeout(240)
def test_who_stood_still_with_the_lock_of_the_file_in_hand(sqlite_ring: Ring) -> None:
    """G3, C1: nobody can write while the open block is held; when it goes on, one effect comes of it."""
    stand_still(sqlite_ring, ("in the block",))
