"""Work that arrives all through an outage, and what must be true after it."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from detent.errors import DatabaseError
from detent.worker.log_limit import LINES_MAX
from tests.deadlines import scaled
from tests.faults.ledger import Ring
from tests.processes.worker_processes import Worker, until

LEASE = scaled(6.0)
"""Long enough that nobody who lives loses it on a slow machine: every attempt that is used up is held against him."""

TAKEN_SECONDS_MAX = scaled(60.0)


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
    """G6: at most two complaints in a second from all processes of a worker together, and at most two lines that say
    that all is well again."""
    lines = worker.log.splitlines()
    complaints = Counter(line[:19] for line in lines if " WARNING " in line or " ERROR " in line)
    relieved = Counter(line[:19] for line in lines if "the database answers again" in line)
    assert max([0, *complaints.values(), *relieved.values()]) <= LINES_MAX, worker.log


def unspoilt(ring: Ring, workers: list[Worker]) -> None:
    """Nobody had to be started again, and no attempt was used up."""
    for worker in workers:
        assert worker.process.poll() is None, worker.log[-3000:]
        speaks_softly(worker)
    used_up = ring.ask("SELECT * FROM {execution} WHERE counted AND outcome <> 'done'")
    assert not used_up, "\n".join([*map(str, used_up), *(worker.log[-20_000:] for worker in workers)])


def away(ring: Ring, stop: Callable[[], None], go_on: Callable[[], None], says: str) -> None:
    """Let the database refuse writes under load until a worker has said so; then let it go on."""
    worker = ring.worker(lease=LEASE, slots=4, processes=2)
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
