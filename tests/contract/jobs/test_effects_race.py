"""Workers that stall, die and come back, a reaper, and a clock that runs: every effect happens once."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from threading import Event

from detent.errors import AlreadyCommitted, DatabaseUnreachable, LeaseLost
from detent.model.records import Abort, Finish
from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store, deadlocks, plain_connection
from tests.contract.jobs.sample_jobs import claim, new_job

JOBS = 150
WORKERS = 4
PASSES_MAX = 2_000


def work(store: Store, seed: int, over: Event) -> int:
    """Claim, apply the effect in the boundary, finish; now and then forget, fail or come late. How often refused."""
    chance = random.Random(seed)
    refusals = 0
    while not over.is_set():
        for held in claim(store, limit=3, lease=4.0, worker=f"worker {seed}"):
            fate = chance.random()
            if fate < 0.1:
                continue
            try:
                # The server ends a block that idles by its own clock for longer than the lease has by the test's.
                with store.commit_block(held.job_id, held.attempt) as tx:
                    tx.execute("INSERT INTO effect VALUES (:job)", {"job": held.job_id})
            except (LeaseLost, AlreadyCommitted, DatabaseUnreachable):
                refusals += 1
            if fate < 0.2:
                continue
            if fate < 0.3:
                store.job_abort([Abort(job_id=held.job_id, attempt=held.attempt, outcome="error")], "ana")
            store.job_finish([Finish(held.job_id, held.attempt)], "ana")
    return refusals


def test_every_effect_happens_once(store: Store, store_url: str, clock: StoreClock) -> None:
    """G2, C1, C4: whatever is claimed twice, finished late or lost on the way, the boundary lets one effect through."""
    with closing(plain_connection(store_url)) as connection:
        connection.execute("CREATE TABLE effect (job bigint NOT NULL)")
        connection.commit()
    first = store.ids_reserve(JOBS)
    ids = list(range(first, first + JOBS))
    store.job_enqueue([new_job(store, id=job_id, attempts_max=10_000) for job_id in ids])
    over = Event()
    with ExitStack() as open_stores, ThreadPoolExecutor(WORKERS) as threads:
        open_stores.callback(over.set)
        stores = [open_stores.enter_context(closing(another_store(store_url, clock))) for _ in range(WORKERS)]
        workers = [threads.submit(work, stores[n], n, over) for n in range(WORKERS)]
        for _ in range(PASSES_MAX):
            clock.advance(0.5)
            store.lease_reap(10)
            if all(count.state == "succeeded" for count in store.counts()):
                break
        over.set()
        for worker in workers:
            worker.result()
    assert {row.state for row in store.job_get(ids) if row} == {"succeeded"}
    with closing(plain_connection(store_url)) as connection:
        rows = connection.execute("SELECT job FROM effect").fetchall()
    assert Counter(job_id for (job_id,) in rows) == Counter(ids)
    assert deadlocks(store_url) == 0
