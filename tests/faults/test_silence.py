"""A way to PostgreSQL on which connections go silent. `make test` runs a slice, `make faults` 2,000 jobs."""

from __future__ import annotations

import random
import secrets
import threading
from collections import Counter

import pytest

from detent.testing.lossy_proxy import Loss, Proxy, Request
from tests.faults.ledger import Ring
from tests.faults.tasks import make_app
from tests.faults.test_lost_answers import surely
from tests.processes.worker_processes import until

SILENT = 20.0
LEASE = 3.0


class Troubles:
    """Of 100 COMMITs 10 get no answer; of 100 calls of any verb 5 lose their connection, and 5 meet silence."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.met: Counter[str] = Counter()

    def __call__(self, request: Request) -> Loss | None:
        if not request.verb:
            return None
        with self._lock:
            drawn = self._chance.random()
            loss: Loss | None = None
            if drawn < 0.05:
                loss = "request"
            elif drawn < 0.10:
                loss = "silence"
            elif request.verb == "COMMIT" and drawn < 0.20:
                loss = "answer"
            if loss is not None:
                self.met[loss] += 1
            return loss


class SilentRenewals:
    """The first renewals meet silence, each on its connection."""

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self, request: Request) -> Loss | None:
        if self._left and request.verb == "lease_renew":
            self._left -= 1
            return "silence"
        return None


@pytest.mark.timeout(240)
def test_a_lease_is_renewed_on_another_connection_when_one_goes_silent(postgres_ring: Ring) -> None:
    """J6, W4: the renewal waited on the silent connection until the lease had run out."""
    gate = postgres_ring.gate()
    with Proxy(postgres_ring.url, SilentRenewals(2), silent_seconds=600.0) as proxy:
        postgres_ring.worker(url=proxy.url, lease=6.0, slots=2)
        job = postgres_ring.send("stop_at", moment="started", gate=str(gate))
        gate.entered()
        until(lambda: proxy.lost.count("lease_renew") == 2, "two silent connections")
        (before,) = postgres_ring.ask("SELECT max(expires_at) FROM {lease}")
        renewed = "SELECT 1 FROM {lease} WHERE expires_at > '%s'" % before[0]  # noqa: UP031
        until(lambda: postgres_ring.ask(renewed), "a lease that is renewed after all")
        gate.open()
        postgres_ring.all_done([job.id])
    assert postgres_ring.attempts() == {"done": 1}


@pytest.mark.timeout(1800)
def test_drops_closes_and_silences(postgres_ring: Ring, whole: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """G1, G2, G7: answers to COMMIT are dropped, connections are closed and go silent, all through: every job succeeds,
    once."""
    seed = secrets.randbits(32)
    troubles = Troubles(seed)
    many = 2000 if whole else 40
    with (
        Proxy(postgres_ring.url, troubles, silent_seconds=SILENT if whole else 4.0) as proxy,
        make_app(postgres_ring.url) as app,
    ):
        work, work_async = app.find_task("work"), app.find_task("work_async")
        jobs = [surely(app, (work, work_async)[n % 2].call(ms=10), f"k{n}") for n in range(many)]
        for name in ("a", "b"):
            postgres_ring.worker(name=name, url=proxy.url, slots=16, lease=LEASE)
        postgres_ring.all_done(jobs, 1700.0 if whole else 200.0)
    with capsys.disabled():
        print(f"\nseed {seed}: {dict(troubles.met)}, {postgres_ring.attempts()}")  # noqa: T201
    given_up = postgres_ring.ask("SELECT count(*) FROM {execution} WHERE next_state NOT IN ('pending', 'succeeded')")
    assert given_up == [(0,)]
