"""Answers of PostgreSQL that never arrive. `make test` runs all of it, `make faults` ten times the jobs."""

from __future__ import annotations

import random
import secrets
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from detent import Detent
from detent.declare.task import Call
from detent.errors import DatabaseUnreachable, OutcomeUnknown
from detent.testing.lossy_proxy import Loss, Proxy, Request
from tests.deadlines import scaled
from tests.faults.ledger import Ring
from tests.faults.tasks import make_app

LONG = scaled(600.0)
"""No lease runs out within a test: what was claimed and not adopted would be missing at its end."""


class FirstOf:
    """Loses something at the first calls of one verb; of COMMIT only the one that ends a commit block."""

    def __init__(self, verb: str, loss: Loss, times: int = 1) -> None:
        self._verb = verb
        self._loss: Loss = loss
        self._left = times

    def __call__(self, request: Request) -> Loss | None:
        if self._left and request.verb == self._verb and (request.verb != "COMMIT" or request.after == "job_mark"):
            self._left -= 1
            return self._loss
        return None


class TenPercent:
    """Loses the answer to one in ten calls of every verb, and of COMMIT."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Loss | None:
        if not request.verb:
            return None
        with self._lock:
            self.asked[request.verb] += 1
            return "answer" if self._chance.random() < 0.1 else None


def surely(app: Detent, call: Call[Any], key: str) -> int:
    """Send until it is taken, as a careful client does: under a key, so that whatever was lost there is one job."""
    while True:
        with suppress(DatabaseUnreachable, OutcomeUnknown):
            return app.enqueue(call, key=key).id


@pytest.mark.timeout(600)
def test_one_answer_in_ten_is_lost(postgres_ring: Ring, whole: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """G7, C6, J2: clients and workers lose answers all through; nothing is lost, doubled, or failed because of it."""
    seed = secrets.randbits(32)
    chance = TenPercent(seed)
    with Proxy(postgres_ring.url, chance) as proxy, make_app(proxy.url) as app:
        for name in ("lossy1", "lossy2"):
            postgres_ring.worker(name=name, url=proxy.url, slots=8, lease=LONG)
        work, work_async = app.find_task("work"), app.find_task("work_async")
        many = 1000 if whole else 100
        jobs = [surely(app, (work, work_async)[n % 2].call(ms=10), f"k{n}") for n in range(many)]
        postgres_ring.all_done(jobs, 300.0)
        lost = Counter(proxy.lost)
    attempts = postgres_ring.attempts()
    with capsys.disabled():
        print(f"\nseed {seed}: {sum(lost.values())} of {sum(chance.asked.values())} answers lost: {lost}, {attempts}")  # noqa: T201
    assert {"COMMIT", "job_claim"} <= chance.asked.keys()
    assert lost["COMMIT"]
    assert attempts["done"] == many
    assert not set(attempts) - {"done", "released"}


def test_a_claim_whose_answer_was_lost_is_adopted(postgres_ring: Ring) -> None:
    """W3: it does not wait for the lease to run out, and no attempt is used up."""
    jobs = [postgres_ring.send("work", ms=1) for _ in range(20)]
    with Proxy(postgres_ring.url, FirstOf("job_claim", "answer", times=3)) as proxy:
        postgres_ring.worker(url=proxy.url, slots=4, reserve_max=0, lease=LONG)
        postgres_ring.all_done(job.id for job in jobs)
        assert proxy.lost == ["job_claim"] * 3
    assert postgres_ring.attempts() == {"done": 20}


@pytest.mark.parametrize("verb", ["job_finish", "COMMIT"])
def test_an_ending_whose_answer_was_lost_is_not_repeated(postgres_ring: Ring, verb: str) -> None:
    """C6, G7: the commit of the effect, or the finish after it, is looked up; the function runs once."""
    job = postgres_ring.send("work", ms=1)
    with Proxy(postgres_ring.url, FirstOf(verb, "answer")) as proxy:
        postgres_ring.worker(url=proxy.url, lease=LONG)
        postgres_ring.all_done([job.id])
        assert proxy.lost == [verb]
    assert postgres_ring.attempts() == {"done": 1}


def test_a_commit_that_never_arrived_is_made_again_and_uses_up_no_attempt(postgres_ring: Ring) -> None:
    """C6, J7: the block is known not to have happened; the job is released and tried again."""
    job = postgres_ring.send("work", ms=1)
    with Proxy(postgres_ring.url, FirstOf("COMMIT", "request")) as proxy:
        postgres_ring.worker(url=proxy.url, lease=LONG)
        postgres_ring.all_done([job.id])
        assert proxy.lost == ["COMMIT"]
    assert postgres_ring.outcomes(job) == ["released", "done"]
    assert job.refresh().row.spared == 1
