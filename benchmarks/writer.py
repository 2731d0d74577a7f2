"""What the writer gains: many callers at once against one, and against a transaction for each call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from benchmarks.measure import Line, Rates, compare, stopwatch
from benchmarks.places import Places
from detent import Context, Detent
from detent.client.client import DirectClient
from detent.client.engine import Engine
from detent.declare.task import Call
from detent.store.contract import Store
from detent.store.open import open_store
from detent.store.postgres.store import PostgresStore

__all__ = ["run"]

THREADS = 32
COROUTINES = 200
WANTED_POSTGRES = {"32 threads": 5.0, "200 coroutines": 10.0}
WANTED_SQLITE = {"32 threads": 3.0, "200 coroutines": 8.0}


def run(places: Places, quick: bool) -> list[Line]:
    """Enqueues of one job each, all durable when they return."""
    alone, each, direct, repetitions = (200, 50, 10, 2) if quick else (1_000, 300, 40, 5)

    def rates(url: str) -> Rates:
        app = Detent(url)

        @app.task(name="bench.noop")
        def noop(ctx: Context, t: int) -> None:
            return None

        calls = [noop.call(t=number) for number in range(1_000)]
        noop.enqueue(t=0)
        one = one_by_one(app.enqueue, calls, alone)
        threads = from_threads(app.enqueue, calls, each)
        coroutines = asyncio.run(from_coroutines(app, calls, each * THREADS // COROUTINES))
        store: Store = PostgresStore(url, connections_max=THREADS) if url.startswith("postgresql:") else open_store(url)
        engine = Engine(app.settings, None, store)
        for_each = from_threads(DirectClient(lambda: store, engine.prepared).enqueue, calls, direct)
        engine.close()
        app.close()
        return {"one caller": one, "32 threads": threads, "200 coroutines": coroutines, "one each": for_each}

    def postgres() -> Rates:
        with places.postgres() as url:
            return rates(url)

    def sqlite() -> Rates:
        with places.sqlite() as url:
            return rates(url)

    lines: list[Line] = []
    for name, measured, wanted in (("PostgreSQL", postgres, WANTED_POSTGRES), ("SQLite", sqlite, WANTED_SQLITE)):
        reached = [measured() for _ in range(repetitions)]
        many = [{phase: one[phase] for phase in ("32 threads", "200 coroutines")} for one in reached]
        lone = [dict.fromkeys(many[0], one["one caller"]) for one in reached]
        each_alone = [{"32 threads": one["one each"]} for one in reached]
        lines += compare(f"{name}, against one caller", many, lone, wanted)
        lines += compare(f"{name}, against a transaction a call", many, each_alone)
    return lines


Enqueue = Callable[[Call[None]], object]


def one_by_one(enqueue: Enqueue, calls: list[Call[None]], count: int) -> float:
    """One caller that waits for each."""
    with stopwatch() as watch:
        for number in range(count):
            enqueue(calls[number % len(calls)])
    return count / watch.seconds


def from_threads(enqueue: Enqueue, calls: list[Call[None]], each: int) -> float:
    """Many threads, each waiting for its own."""
    failures: list[BaseException] = []
    ready = threading.Barrier(THREADS + 1)

    def send() -> None:
        try:
            enqueue(calls[0])  # its connection, if it has one, is open by then
            ready.wait()
            for number in range(each):
                enqueue(calls[number % len(calls)])
        except BaseException as error:
            failures.append(error)
            ready.abort()

    threads = [threading.Thread(target=send) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    ready.wait()
    with stopwatch() as watch:
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return THREADS * each / watch.seconds


async def from_coroutines(app: Detent, calls: list[Call[None]], each: int) -> float:
    """Many coroutines on one loop, each waiting for its own."""

    async def send() -> None:
        for number in range(each):
            await app.aio.enqueue(calls[number % len(calls)])

    await app.aio.enqueue(calls[0])
    with stopwatch() as watch:
        await asyncio.gather(*(send() for _ in range(COROUTINES)))
    return COROUTINES * each / watch.seconds
