"""Many tenants and many limit keys: drains and idle looks, against those of one tenant in the same database.

Each tenant, and each limit key, has a lane of its own. One tenant is drained first and last, so that the last line says
what is left of a hundred thousand lanes that nobody uses any more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial

from benchmarks.measure import Line, Rates, compare, stopwatch
from benchmarks.places import Places
from benchmarks.sides import BATCH, BULK, LEASE, TASK, WORKER
from detent.model.limit_records import NewLimit
from detent.model.records import Claimed, Finish, NewJob
from detent.store.contract import Store
from detent.store.open import open_store

__all__ = ["run"]

IDLE = "idle looks"
AFTER = "one tenant afterwards"
LOOKS = 200


def run(places: Places, quick: bool) -> list[Line]:
    """A line for each number of lanes, one for limit keys, for an idle worker and for one tenant afterwards."""
    one, crowds, repetitions = (5_000, (500, 5_000), 1) if quick else (20_000, (1_000, 20_000, 100_000), 3)
    wanted = {IDLE: 0.9, AFTER: 0.9}
    lines: list[Line] = []
    for name, place in (("PostgreSQL", places.postgres), ("SQLite", places.sqlite)):
        ours, base = [], []
        for _ in range(repetitions):
            with place() as url, closing(open_store(url)) as store:
                reached, held_against = _measured(store, one, crowds, partial(places.settle, url))
                ours.append(reached)
                base.append(held_against)
        lines += compare(name, ours, base, wanted | {phase: 0.5 for phase in ours[0] if "tenants" in phase})
    return lines


def _measured(store: Store, one: int, crowds: tuple[int, ...], settle: Callable[[], None]) -> tuple[Rates, Rates]:
    """What was reached, and the rate of one tenant to hold it against."""
    _sent_and_drained(store, one, lambda n: "", settle)
    alone = _sent_and_drained(store, one, lambda n: "", settle)
    looks = _looked(store)
    reached: Rates = {}
    for tenants in crowds:
        for each in (1, 10) if tenants <= 20_000 else (1,):
            phase = f"{tenants:,} tenants, {'a job' if each == 1 else f'{each} jobs'} each"
            reached[phase] = _sent_and_drained(store, tenants * each, _of(tenants), settle)
    settle()
    reached[IDLE] = _looked(store)
    reached[AFTER] = _sent_and_drained(store, one, lambda n: "", settle)
    store.limit_put(NewLimit(key=TASK, concurrency_max=BATCH, tasks=(TASK,)))
    keys = max(crowds)
    limited = _sent_and_drained(store, one, lambda n: "", settle)
    with_keys = f"{keys:,} limit keys, a job each"
    reached[with_keys] = _sent_and_drained(store, keys, lambda n: "", settle, key=lambda n: f"k{n}")
    return reached, dict.fromkeys(reached, alone) | {IDLE: looks, with_keys: limited}


def _of(tenants: int) -> Callable[[int], str]:
    return lambda n: f"tenant {n % tenants}"


def _sent_and_drained(
    store: Store,
    jobs: int,
    tenant: Callable[[int], str],
    settle: Callable[[], None],
    key: Callable[[int], str | None] = lambda n: None,
) -> float:
    """Jobs a second of one claimer."""
    first = store.ids_reserve(jobs)
    for start in range(0, jobs, BULK):
        items = [
            NewJob(id=first + n, task=TASK, payload="{}", nonce=1, fingerprint="", tenant=tenant(n), limit_key=key(n))
            for n in range(start, min(start + BULK, jobs))
        ]
        store.job_enqueue(items)
    settle()
    done = 0
    with stopwatch() as watch:
        while held := _claim(store):
            store.job_finish([Finish(job_id=one.job_id, attempt=one.attempt) for one in held], WORKER)
            done += len(held)
    if done != jobs:
        raise AssertionError(f"{done} of {jobs} jobs came to their end")
    return jobs / watch.seconds


def _looked(store: Store) -> float:
    """Claims a second that find nothing."""
    with stopwatch() as watch:
        for _ in range(LOOKS):
            _claim(store)
    return LOOKS / watch.seconds


def _claim(store: Store) -> list[Claimed]:
    lease_id = store.ids_reserve(1)
    return store.job_claim(lease_id=lease_id, worker=WORKER, queues=None, tasks=[TASK], limit=BATCH, lease=LEASE)
