"""The life of a job, told the same way for Detent's bare verbs and for a floor."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self

from benchmarks.measure import Rates, stopwatch
from detent.model.records import Finish, NewJob
from detent.store.contract import Store
from detent.store.open import open_store

__all__ = ["BATCH", "FINGERPRINT", "LEASE", "TASK", "WORKER", "DetentSide", "Side", "drain", "lives", "payload"]

BULK = 1000
"""Jobs in one call of enqueue."""
BATCH = 500
"""Jobs in one claim, and in one finish."""
BATCHES = 10
"""Batches in one slice."""
SINGLES = 100
"""Calls of one job each in one slice."""
FIRST = 1_000_000
LEASE = 30.0
TASK = "bench.noop"
WORKER = "bench"
FINGERPRINT = "0123456789abcdef" * 2
"""As long as those of steps are."""


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

    def __init__(self, url: str, batch: int = BATCH, task: str = TASK) -> None:
        self.store: Store = open_store(url)
        self._batch = batch
        self._task = task
        self._leases = self.store.ids_reserve(10_000)

    def jobs(self, first: int, count: int) -> Sequence[NewJob]:
        numbers = range(first, first + count)
        return [NewJob(id=n, task=self._task, payload=payload(n), nonce=1, fingerprint="") for n in numbers]

    def enqueue(self, jobs: Sequence[NewJob]) -> None:
        self.store.job_enqueue(jobs)

    def claim(self) -> Sequence[Any]:
        self._leases += 1
        return self.store.job_claim(
            lease_id=self._leases, worker=WORKER, queues=None, tasks=[self._task], limit=self._batch, lease=LEASE
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


def lives(
    sides: Mapping[str, Side], *, bulk: int, single: int, overlap: bool, settle: Callable[[], None]
) -> dict[str, Rates]:
    """The same jobs through every side, phase by phase and slice by slice: what disturbs one disturbs the others."""
    many = {name: side.jobs(FIRST, bulk) for name, side in sides.items()}
    few = {name: side.jobs(FIRST + bulk, single) for name, side in sides.items()}
    left = bulk + single
    slices = -(-left // (BATCH * BATCHES))

    def in_bulk(name: str, start: int) -> None:
        sides[name].enqueue(many[name][start : start + BULK])

    def one_by_one(name: str, start: int) -> None:
        for place in range(start, start + SINGLES):
            sides[name].enqueue(few[name][place : place + 1])

    def claim_and_finish(name: str, _: int) -> None:
        drain(sides[name], BATCHES, overlap=overlap)

    reached: dict[str, Rates] = {name: {} for name in sides}
    for phase, count, starts, work in (
        ("enqueue in bulk", bulk, range(0, bulk, BULK), in_bulk),
        ("enqueue one by one", single, range(0, single, SINGLES), one_by_one),
        ("claim and finish", left, range(slices), claim_and_finish),
    ):
        if phase == "claim and finish":
            settle()
        for name, seconds in _in_turn(list(sides), starts, work).items():
            if count:
                reached[name][phase] = count / seconds
    for name, side in sides.items():
        if side.succeeded() != left:
            raise AssertionError(f"{name}: {side.succeeded()} of {left} jobs came to their end")
    return reached


def _in_turn(names: Sequence[str], starts: Sequence[int], work: Callable[[str, int], None]) -> dict[str, float]:
    seconds = dict.fromkeys(names, 0.0)
    for turn, start in enumerate(starts):
        for name in names if turn % 2 == 0 else reversed(names):
            with stopwatch() as watch:
                work(name, start)
            seconds[name] += watch.seconds
    return seconds


def drain(
    side: Side, batches: int | None = None, *, overlap: bool, took: Callable[[int], None] = lambda count: None
) -> None:
    """Claim and finish this number of batches, or until nothing is left. With overlap the next claim runs while the
    last batch is finished. `took` is called with the number of jobs of each claim."""
    if overlap:
        _overlapping(side, batches, took)
        return
    for batch in _claims(side, batches, took):
        side.finish(batch)


def _claims(side: Side, batches: int | None, took: Callable[[int], None]) -> Iterator[Sequence[Any]]:
    for _ in itertools.count() if batches is None else range(batches):
        batch = side.claim()
        if batch:
            took(len(batch))
            yield batch
        elif batches is None:
            return


def _overlapping(side: Side, batches: int | None, took: Callable[[int], None]) -> None:
    claimed: queue.Queue[Sequence[Any]] = queue.Queue(maxsize=2)
    failures: list[BaseException] = []
    thread = threading.Thread(target=_finish_all, args=(side.finish, claimed, failures))
    thread.start()
    try:
        for batch in _claims(side, batches, took):
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
