"""A writer over a real store with a window, and somebody who holds it up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from detent.errors import DetentError, OutcomeUnknown
from detent.model.records import Enqueued, NewJob
from detent.store.contract import Store, Verbs
from detent.store.jobs.filters import JobSearch
from detent.store.writer import Writer

T = TypeVar("T")
DEADLINE = 60.0


class Watched:
    """The real store with a window: it counts transactions, and loses the answer to a COMMIT when told to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.transactions = 0
        self.answers_to_lose = 0
        self.then: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def together(self, work: Callable[[Verbs], T]) -> T:
        return self._transaction(lambda: self._store.together(work))

    def job_enqueue(self, items: Sequence[NewJob]) -> Sequence[Enqueued | DetentError]:
        return self._transaction(lambda: self._store.job_enqueue(items))

    def _transaction(self, work: Callable[[], T]) -> T:
        self.transactions += 1
        done = work()
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise OutcomeUnknown(self._store.name, "the cable was pulled")
        self.then()
        return done


@contextmanager
def held(writer: Writer, crowd: ThreadPoolExecutor) -> Iterator[None]:
    """Somebody's transaction that stays open until the block ends, so that everybody else has to line up."""
    inside, go = threading.Event(), threading.Event()

    def linger(_verbs: Verbs, items: Sequence[Any]) -> Sequence[Any]:
        inside.set()
        assert go.wait(DEADLINE)
        return items

    first = crowd.submit(writer.write, linger, ["first"])
    assert inside.wait(DEADLINE)
    try:
        yield
    finally:
        go.set()
        assert first.result(DEADLINE) == ["first"]


def jobs_of(store: Store) -> list[int]:
    return sorted(row.id for row in store.job_list(JobSearch(), limit=10_000).rows)
