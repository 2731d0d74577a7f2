"""The life of a job, told the same way for Detent's bare verbs and for a floor."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self

from benchmarks.measure import Rates, stopwatch
from detent.model.records import Finish, NewJob
from detent.store.contract import Store
from detent.store.open import open_store

__all__ = ["BATCH", "BULK", "LEASE", "TASK", "WORKER", "DetentSide", "Side", "drain", "enqueue", "payload"]

BULK = 1000
"""Jobs in one call of enqueue."""
BATCH = 500
"""Jobs in one claim, and in one finish."""
LEASE = 30.0
TASK = "bench.noop"
WORKER = "bench"


def payload(number: int) -> str:
    """Small, and no two alike: Detent sends equal columns once."""
    return f'{{"t":{number}}}'


class Side(AbstractContextManager[Any], Protocol):
    """Whoever is measured, on one database."""

    def jobs(self, first: int, count: int) -> Sequence[Any]:
        """Jobs to be sent, made before the clock runs."""
        ...

    def enqueue(self, jobs: Sequence[Any]) -> None:
        """One durable call."""
        ...

    def claim(self) -> Sequence[Any]:
        """Up to a batch, under one lease; empty when there is nothing left."""
        ...

    def finish(self, batch: Sequence[Any]) -> None:
        """End them all as done."""
        ...

    def succeeded(self) -> int:
        """How many came to their end."""
        ...


class DetentSide:
    """The verbs of a store, as its contract has them."""

    def __init__(self, url: str) -> None:
        self.store: Store = open_store(url)
        self._leases = self.store.ids_reserve(10_000)

    def jobs(self, first: int, count: int) -> Sequence[NewJob]:
        numbers = range(first, first + count)
        return [NewJob(id=n, task=TASK, payload=payload(n), nonce=1, fingerprint="") for n in numbers]

    def enqueue(self, jobs: Sequence[NewJob]) -> None:
        self.store.job_enqueue(jobs)

    def claim(self) -> Sequence[Any]:
        self._leases += 1
        return self.store.job_claim(
            lease_id=self._leases, worker=WORKER, queues=None, tasks=[TASK], limit=BATCH, lease=LEASE
        )

    def finish(self, batch: Sequence[Any]) -> None:
        self.store.job_finish([Finish(job_id=one.job_id, attempt=one.attempt) for one in batch], WORKER)

    def succeeded(self) -> int:
        return sum(count.jobs for count in self.store.counts() if count.state == "succeeded")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.store.close()


def enqueue(side: Side, bulk: int, single: int, first: int = 1_000_000) -> Rates:
    """The way in, in bulk and one by one."""
    many = side.jobs(first, bulk)
    with stopwatch() as in_bulk:
        for start in range(0, bulk, BULK):
            side.enqueue(many[start : start + BULK])
    few = side.jobs(first + bulk, single)
    with stopwatch() as one_by_one:
        for place in range(single):
            side.enqueue(few[place : place + 1])
    return {"enqueue in bulk": bulk / in_bulk.seconds, "enqueue one by one": single / one_by_one.seconds}


def drain(side: Side, count: int, *, overlap: bool) -> Rates:
    """Claim and finish all of them. With overlap the next claim runs while the last batch is finished."""
    with stopwatch() as watch:
        if overlap:
            _overlapping(side)
        else:
            while batch := side.claim():
                side.finish(batch)
    done = side.succeeded()
    if done != count:
        raise AssertionError(f"{done} of {count} jobs came to their end")
    return {"claim and finish": count / watch.seconds}


def _overlapping(side: Side) -> None:
    claimed: queue.Queue[Sequence[Any]] = queue.Queue(maxsize=2)
    failures: list[BaseException] = []
    thread = threading.Thread(target=_finish_all, args=(side.finish, claimed, failures))
    thread.start()
    try:
        while batch := side.claim():
            claimed.put(batch)
    finally:
        claimed.put(())
        thread.join()
    if failures:
        raise failures[0]


def _finish_all(
    finish: Callable[[Sequence[Any]], None], claimed: queue.Queue[Sequence[Any]], failures: list[BaseException]
) -> None:
    while batch := claimed.get():
        try:
            if not failures:
                finish(batch)
        except BaseException as error:
            failures.append(error)
