"""Many tenants, many limit keys, a long past: what remains of the speed that the same worker has without them.

Each tenant, and each limit key, has a lane of its own. Every figure is held against one of the same database.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial

from benchmarks.contest.arena import Arena, Failed
from benchmarks.contest.console import request_times
from benchmarks.contest.works import Size, Values, drained, first_of, idle, reap
from benchmarks.fill import fill
from benchmarks.measure import median_milliseconds, stopwatch
from benchmarks.sides import BULK, TASK
from detent.lifecycle.library import JOB
from detent.model.limit_records import NewLimit
from detent.model.records import NewJob
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.store.open import open_store

__all__ = ["beside_retention", "filled", "keys", "tenants"]

LIMITED = 1_000_000
"""A limit that never holds a job back."""
TURNS = 3
LOOKS = 5


def tenants(arena: Arena, size: Size) -> Values:
    """Drains with few and with very many tenants, an idle worker afterwards, and one tenant afterwards. Each against a
    drain of as many jobs of one tenant, in the same database before there were others."""
    counts = sorted({size.drained, *(crowd * each for crowd in size.crowds for each in (1, 10))})
    with closing(open_store(arena.url)) as store:
        before = {count: _sent_and_drained(arena, store, count) for count in counts}
        reached = {"per_second": before[size.drained]}
        for crowd in size.crowds:
            for each in (1, 10):
                rate = _sent_and_drained(arena, store, crowd * each, tenant=partial(_one_of, crowd))
                reached[f"kept_{crowd}_{each}"] = rate / before[crowd * each]
        reached["fold_us"] = _fold(store) / (10 * max(size.crowds)) * 1e6
        reached["reap_us"] = reap(store) / (10 * max(size.crowds)) * 1e6
        reached["idle_percent"] = idle(arena, size)["cpu_percent"]
        reached["kept_afterwards"] = _sent_and_drained(arena, store, size.drained) / before[size.drained]
    return reached


def keys(arena: Arena, size: Size) -> Values:
    """A drain of jobs with a limit key each, against jobs without one under the same limit."""
    crowd = max(size.crowds)
    with closing(open_store(arena.url)) as store:
        store.limit_put(NewLimit(key=TASK, concurrency_max=LIMITED, tasks=(TASK,)))
        before = _sent_and_drained(arena, store, crowd)
        rate = _sent_and_drained(arena, store, crowd, key=lambda n: f"key {n}")
    return {"per_second": rate, "kept": rate / before}


def beside_retention(arena: Arena, size: Size) -> list[Values]:
    """Drains while old jobs are deleted, against drains in the same database while nothing is."""
    fill(arena.url, size.old, 0)
    turns: list[Values] = []
    with closing(open_store(arena.url)) as store:
        for turn in range(TURNS):
            order = [True, False] if turn % 2 else [False, True]
            rates = {"beside" if beside else "free": _kept_busy(arena, store, size, beside) for beside in order}
            turns.append({"kept": rates["beside"] / rates["free"], **rates})
    return turns


def _kept_busy(arena: Arena, store: Store, size: Size, beside: bool) -> float:
    """Jobs a second of a worker that has begun to delete old jobs before it may claim, or that deletes none."""
    count = 2 * size.drained
    fill(arena.url, 0, count)
    arena.settle()
    store.queue_pause("default", "bench")
    arena.new_board()
    old = _at_rest(store)
    # The other states are kept, so that only one pass is measured.
    kept = {"DETENT_KEEP_OTHERS": "0", "DETENT_KEEP_SUCCEEDED": "0.01" if beside else "0"}
    with arena.working(1, BENCH_DRAIN="", **kept) as tree:
        until = time.monotonic() + 60.0
        while beside and _at_rest(store) == old and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1.0)
        store.queue_resume("default", "bench")
        arena.wait_for(count, tree)
        rate = count / (time.time() - arena.board.first())
    if beside is (_at_rest(store) >= old + count):
        raise Failed("retention deleted nothing" if beside else "retention deleted jobs")
    return rate


def filled(arena: Arena, size: Size) -> list[Values]:
    """The first jobs of a drain beside a long past and a long line, against as many in an empty database; and what it
    takes to look at that past. Filling takes long, so it is done once, for several turns."""
    fill(arena.url, size.finished, size.pending)
    looked = {**_looks(arena.url), **request_times(arena)}
    turns: list[Values] = []
    for turn in range(TURNS):
        with arena.beside() as fresh:
            fill(fresh.url, 0, size.drained)
            pair = [("empty", fresh), ("filled", arena)]
            rates = {name: first_of(one, size.drained) for name, one in (pair if turn % 2 else reversed(pair))}
        kept = rates["filled"] / rates["empty"]
        turns.append({"kept": kept, **rates, "finished": size.finished, "pending": size.pending, **looked})
    return turns


def _looks(url: str) -> Values:
    """Milliseconds for the counts, and for the first page of the slowest state."""
    with closing(open_store(url)) as store:
        counts = median_milliseconds(store.counts, LOOKS)
        pages = [median_milliseconds(partial(store.job_list, JobSearch(state=state)), LOOKS) for state in JOB.states]
    return {"counts_ms": counts, "list_ms": max(pages)}


def _one_of(crowd: int, number: int) -> str:
    return f"tenant {number % crowd}"


def _at_rest(store: Store) -> int:
    return sum(count.jobs for count in store.counts() if count.state == "succeeded")


def _sent_and_drained(
    arena: Arena,
    store: Store,
    jobs: int,
    tenant: Callable[[int], str] = lambda n: "",
    key: Callable[[int], str | None] = lambda n: None,
) -> float:
    """Jobs a second of one worker."""
    first = store.ids_reserve(jobs)
    for start in range(0, jobs, BULK):
        items = [
            NewJob(
                id=first + n,
                task=TASK,
                payload='{"t":0.0}',
                nonce=1,
                fingerprint="",
                tenant=tenant(n),
                limit_key=key(n),
            )
            for n in range(start, min(start + BULK, jobs))
        ]
        store.job_enqueue(items)
    _fold(store)
    return drained(arena, jobs, first_id=first)["per_second"]


def _fold(store: Store) -> float:
    """Add up the counts of the drains before, and return how long it took. A worker does this within ten seconds. Here
    it ends with its drain, and the next one would have to do it."""
    with stopwatch() as watch:
        while store.counts_fold(10):
            pass
    return watch.seconds
