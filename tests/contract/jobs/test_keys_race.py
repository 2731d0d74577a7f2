"""64 callers want the same key at the same moment; some change their minds."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier as ProcessBarrier

import pytest

from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from tests.contract.concurrent_callers import PATIENCE, Bid, Outcome, race_for_keys

CALLERS = 64
PROCESSES = 2
CALLERS_OF_A_PROCESS = 12

gate: ProcessBarrier | None = None


def set_gate(barrier: ProcessBarrier) -> None:
    """In each child process, before its callers start."""
    global gate
    gate = barrier


def race_behind_the_gate(url: str, bids: list[Bid]) -> list[Outcome]:
    return race_for_keys(url, bids, gate)


def race(url: str, bids: list[Bid]) -> list[Outcome]:
    """All at once: most in threads here, the rest in threads of other processes."""
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(PROCESSES + 1)
    away = PROCESSES * CALLERS_OF_A_PROCESS
    shares = [bids[n : n + CALLERS_OF_A_PROCESS] for n in range(0, away, CALLERS_OF_A_PROCESS)]
    with ProcessPoolExecutor(PROCESSES, spawn, initializer=set_gate, initargs=(barrier,)) as children:
        others = [children.submit(race_behind_the_gate, url, share) for share in shares]
        outcomes = race_for_keys(url, bids[away:], barrier)
        for other in others:
            outcomes += other.result(PATIENCE)
    return outcomes


@pytest.mark.timeout(240)
def test_one_job_whoever_comes_first(store: Store, store_url: str) -> None:
    """J3: the same key returns the existing job, also when callers race and some of them roll back."""
    first = store.ids_reserve(CALLERS)
    bids = [Bid(first + n, "welcome:7", '{"to":7}', rolls_back=n % 3 == 0) for n in range(CALLERS)]
    outcomes = race(store_url, bids)
    (winner,) = store.job_list(JobSearch()).rows
    kept = [outcome for outcome in outcomes if not outcome.bid.rolls_back]
    assert len(outcomes) == CALLERS
    assert {outcome.job_id for outcome in kept} == {winner.id}
    assert [outcome.bid.job_id for outcome in kept if outcome.created] == [winner.id]
    for outcome in outcomes:
        assert not outcome.conflict
        assert outcome.job_id == (outcome.bid.job_id if outcome.created else winner.id)


@pytest.mark.timeout(240)
def test_another_payload_is_a_conflict_that_names_the_first(store: Store, store_url: str) -> None:
    """J3: among two payloads one wins; whoever brought the other is told so, and nothing of it is left."""
    first = store.ids_reserve(CALLERS)
    bids = [Bid(first + n, "welcome:7", f'{{"to":{n % 2}}}', rolls_back=n % 8 >= 6) for n in range(CALLERS)]
    outcomes = race(store_url, bids)
    (winner,) = store.job_list(JobSearch()).rows
    kept = [outcome for outcome in outcomes if not outcome.bid.rolls_back]
    assert {outcome.job_id for outcome in kept} == {winner.id}
    for outcome in kept:
        assert outcome.conflict == (outcome.bid.payload != winner.payload)
    assert [outcome.bid.job_id for outcome in kept if outcome.created] == [winner.id]
