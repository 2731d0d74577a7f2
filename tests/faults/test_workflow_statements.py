"""SIGKILL at every statement of workers that run workflows: each alone, before each statement, with every invariant of
rows checked each time; and all together, at statements that chance picks. Both are part of `make faults`. For every
change, the figure P15 of `make prove` does the same at statements that a seed draws.
"""

from __future__ import annotations

import itertools
import random
import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from detent.client.job import Job
from detent.testing.harness import Harness
from detent.testing.stores import plain_connection, row_violations
from prove.trap import killed_at
from prove.workflows.lives import LEASE, LIVES, Calls, Life, declare
from prove.workflows.look import BOOKED, calls_of_recorded, look
from prove.workflows.sweep import small_portions

KILLS = 2
STATEMENTS = 1000
"""About how many statements all lives together take."""


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path / "calls")


@pytest.fixture
def harness(store_url: str, calls: Calls) -> Iterator[Harness]:
    with closing(plain_connection(store_url)) as connection:
        connection.execute(BOOKED)
        connection.commit()
    with small_portions(), closing(Harness(store_url, lease=LEASE)) as one:
        declare(one, calls)
        yield one


def begin(harness: Harness, life: Life) -> Job[Any]:
    return harness.app.enqueue(harness.app.find_task(life.body).call())


def check(harness: Harness, calls: Calls, life: Life, job: Job[Any], recorded: dict[str, int], where: str) -> None:
    """The workflow came to its end; what is on record was done; a kill repeats at most what it cut short."""
    assert list(look(harness, calls, life, job, recorded)) == [], where


def settle(harness: Harness, lives: list[tuple[Life, Job[Any]]]) -> None:
    """Others go on: leases expire, and whatever the dead process did from outside is done again."""
    for life, job in lives:
        harness.clock.advance(LEASE + 1)
        life.live(harness, job)
    for _ in range(3):
        harness.clock.advance(max([LEASE + 1, *(2 * life.turns + 1 for life, _ in lives)]))
        harness.work()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", LIVES)
def test_a_worker_is_killed_at_every_statement(harness: Harness, calls: Calls, whole: bool, name: str) -> None:
    """F1 to F3, F5, F6, F8 to F11, F13 to F16, F18 to F21: wherever a worker died, others bring the workflow
    to the same end. A recorded step is not repeated, a transaction happens once, and no signal or child is lost."""
    if not whole:
        pytest.skip("part of make faults")
    life = LIVES[name]

    for k in itertools.count(1):
        job = begin(harness, life)
        died = killed_at(k, lambda job=job: life.live(harness, job), after=False)  # type: ignore[misc]
        assert row_violations(harness.store, harness.url) == []
        recorded = calls_of_recorded(harness, calls, life, job)
        harness.clock.advance(life.turns)
        settle(harness, [(life, job)])
        check(harness, calls, life, job, recorded, f"{name}: before statement {k}")
        if not died:
            break
    assert k > 50
    assert harness.store.verify() == []


@pytest.mark.timeout(600)
def test_a_worker_is_killed_at_some_statements(harness: Harness, calls: Calls, whole: bool) -> None:
    """F1 to F3, F5, F6, F8 to F11, F13 to F16, F18 to F21: the same for all workflows at once."""
    if not whole:
        pytest.skip("part of make faults, and of the figure P15")
    seed = secrets.randbelow(1_000_000)
    chance = random.Random(seed)
    for _ in range(KILLS):
        lives = [(life, begin(harness, life)) for life in LIVES.values()]
        k = chance.randrange(20, STATEMENTS)

        def live(lives: list[tuple[Life, Job[Any]]] = lives) -> None:
            for life, job in lives:
                life.live(harness, job)

        killed_at(k, live, after=chance.random() < 0.5)
        before = {job.id: calls_of_recorded(harness, calls, life, job) for life, job in lives}
        harness.clock.advance(sum(life.turns for life, _ in lives))
        settle(harness, lives)
        for life, job in lives:
            check(harness, calls, life, job, before[job.id], f"{life.body}: statement {k}, seed {seed}")
    assert harness.store.verify() == []
