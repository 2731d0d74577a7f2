"""Jobs with a key of their own: one limit for each key, with the bounds of their task's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier, Lock
from typing import Any

import pytest

from detent.model.limit_records import NewLimit
from detent.model.records import Claimed
from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store
from tests.contract.concurrent_callers import PATIENCE
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, finish

TASK = "mail.send"
ONE_EACH = NewLimit(key=TASK, concurrency_max=1, tasks=(TASK,))
THREADS, KEYS, OF_EACH = 6, 3, 8


def jobs(store: Store, keys: str, **overrides: Any) -> list[int]:
    """A job for each letter, under the key of that name."""
    return [enqueue(store, limit_key=f"shop:{key}", **overrides) for key in keys]


def ids(claimed: list[Claimed]) -> list[int]:
    return [one.job_id for one in claimed]


def running(store: Store) -> dict[str, int]:
    return {row.key: row.running for row in store.limit_list() if row.template is not None}


def test_each_key_has_a_limit_of_its_own(store: Store) -> None:
    """J12: a full key keeps its own back and nobody else, and what it keeps back stays in its place."""
    store.limit_put(ONE_EACH)
    made = jobs(store, "aaab")
    held = claim(store)
    assert ids(held) == [made[0], made[3]]
    assert claim(store) == []
    finish(store, held[0])
    assert ids(claim(store)) == [made[1]]
    assert running(store) == {"shop:a": 1, "shop:b": 1}


def test_a_claim_is_filled_up_with_other_keys(store: Store) -> None:
    """However many of one key stand before them."""
    store.limit_put(ONE_EACH)
    made = jobs(store, "a" * 30 + "bcd")
    assert ids(claim(store, limit=3)) == [made[0], made[30], made[31]]


def test_a_job_without_a_key_is_under_the_limit_of_its_task(store: Store) -> None:
    store.limit_put(ONE_EACH)
    made = [*jobs(store, "a"), *(enqueue(store) for _ in range(2))]
    assert ids(claim(store)) == made[:2]


def test_a_key_without_a_limit_means_nothing(store: Store) -> None:
    made = jobs(store, "aaa")
    assert ids(claim(store)) == made


def test_the_limit_of_the_queue_counts_too(store: Store) -> None:
    store.limit_put(ONE_EACH)
    store.limit_put(NewLimit(key="queue:default", concurrency_max=2, queues=("default",)))
    made = jobs(store, "aabc")
    assert ids(claim(store)) == [made[0], made[2]]


def test_tasks_share_a_key(store: Store) -> None:
    """One shop, whoever asks it."""
    store.limit_put(ONE_EACH)
    store.limit_put(NewLimit(key="other", concurrency_max=1, tasks=("other",)))
    first, _ = enqueue(store, limit_key="shop:a"), enqueue(store, task="other", limit_key="shop:a")
    assert ids(claim(store, tasks=[TASK, "other"])) == [first]


def test_a_rate_for_each_key(store: Store, clock: StoreClock) -> None:
    store.limit_put(NewLimit(key=TASK, rate=1, burst=2, tasks=(TASK,)))
    made = jobs(store, "aaaab")
    assert ids(claim(store)) == [made[0], made[1], made[4]]
    clock.advance(1)
    assert ids(claim(store)) == [made[2]]


def test_new_bounds_are_for_every_key(store: Store) -> None:
    store.limit_put(ONE_EACH)
    made = jobs(store, "aaa")
    claim(store)
    store.limit_put(NewLimit(key=TASK, concurrency_max=2, tasks=(TASK,)))
    assert ids(claim(store)) == [made[1]]


def test_what_runs_already_counts_under_its_key(store: Store) -> None:
    made = jobs(store, "aab")
    claim(store, limit=1)
    store.limit_put(ONE_EACH)
    assert ids(claim(store)) == [made[2]]


def test_the_other_side_of_one_key_says_no(store: Store, clock: StoreClock, caplog: pytest.LogCaptureFixture) -> None:
    """B5: its pause and its breaker are its own; that it opens and closes is on record and logged, once each."""
    caplog.set_level("INFO", logger="detent.limits")
    store.limit_put(ONE_EACH)
    jobs(store, "a")
    for _ in range(8):
        held = claim(store)
        if not held:
            clock.advance(60)
            store.job_promote(10)
            (held,) = [claim(store)]
        abort(store, held[0], "throttled", delay=1)
        clock.advance(1)
        store.job_promote(10)
    (other,) = jobs(store, "b")
    assert ids(claim(store)) == [other]
    clock.advance(60)
    finish(store, claim_one(store))
    jobs(store, "a")
    assert claim_one(store)
    moves = [(line.from_state, line.to_state, line.reason) for line in store.transitions("limit", "shop:a")]
    why = ("6 attempts in a row were throttled", "an attempt has succeeded")
    assert moves == [("closed", "open", why[0]), ("open", "closed", why[1])]
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "detent.limits"]
    assert told == [
        ("WARNING", f"the breaker of limit 'shop:a' is open: {why[0]}"),
        ("INFO", f"the breaker of limit 'shop:a' is closed: {why[1]}"),
    ]


def test_a_key_of_which_nothing_is_left_to_say_goes(store: Store, clock: StoreClock) -> None:
    """J16: with retention, so that keys of the past cost nothing; one that is paused or in use stays."""
    store.limit_put(NewLimit(key=TASK, rate=1, burst=2, tasks=(TASK,)))
    jobs(store, "abc")
    first, *_ = claim(store, limit=2)
    finish(store, first)
    store.limit_pause("shop:c", "ana")
    clock.advance(5)
    store.limit_prune("", 10)
    assert running(store) == {"shop:b": 1, "shop:c": 0}


def test_many_who_claim_at_once_never_exceed_it(store: Store, store_url: str) -> None:
    """J12: threads that claim and finish: never two of one key at once, and nothing is left over."""
    store.limit_put(ONE_EACH)
    key_of = {job: key for key in range(KEYS) for job in jobs(store, f"{key}" * OF_EACH)}
    together, lock = Barrier(THREADS), Lock()
    at_work: list[int] = []
    most = [0]
    left = [len(key_of)]

    def work(_: int) -> None:
        with closing(another_store(store_url)) as mine:
            together.wait(PATIENCE)
            while left[0] > 0:
                held = claim(mine, limit=3)
                with lock:
                    at_work.extend(key_of[one.job_id] for one in held)
                    most[0] = max([most[0], *(at_work.count(key) for key in range(KEYS))])
                with lock:
                    for one in held:
                        at_work.remove(key_of[one.job_id])
                for one in held:
                    finish(mine, one)
                with lock:
                    left[0] -= len(held)

    with ThreadPoolExecutor(THREADS) as workers:
        list(workers.map(work, range(THREADS)))
    assert (left[0], most[0]) == (0, 1)
