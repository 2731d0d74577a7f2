"""A writer over a real store that is watched, and a caller that holds it up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from detent.errors import OutcomeUnknown
from detent.model.records import NewJob
from detent.store.contract import Store, Verbs
from detent.store.enqueue_writer import EnqueueWriter
from detent.store.jobs.filters import JobSearch

T = TypeVar("T")
DEADLINE = 60.0


class Step:
    """An item that does something in the transaction in which it is written, after the jobs beside it."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act


class Watched:
    """The real store: it counts transactions, and loses the answer to a COMMIT when told to. It also takes items that
    are no jobs, gives them back as their answers, and sends what comes alone by `send`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.transactions = 0
        self.answers_to_lose = 0
        self.before: Callable[[], None] = lambda: None
        self.then: Callable[[], None] = lambda: None
        self.send: Callable[[Sequence[NewJob]], Any] = lambda _: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def job_enqueue(self, items: Sequence[Any]) -> Sequence[Any]:
        return self._transaction(lambda: self._written(items))

    def job_enqueue_sent(self, items: Sequence[NewJob]) -> Any:
        return self.send(items)

    def _written(self, items: Sequence[Any]) -> Sequence[Any]:
        if all(isinstance(item, NewJob) for item in items):
            return self._store.job_enqueue(items)

        def work(verbs: Verbs) -> list[Any]:
            jobs = [item for item in items if isinstance(item, NewJob)]
            enqueued = iter(verbs.job_enqueue(jobs) if jobs else ())
            answers = [next(enqueued) if isinstance(item, NewJob) else item for item in items]
            for item in items:
                if isinstance(item, Step):
                    item.act()
            return answers

        return self._store.together(work)

    def _transaction(self, work: Callable[[], T]) -> T:
        self.transactions += 1
        self.before()
        done = work()
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise OutcomeUnknown(self._store.name, "the cable was pulled")
        self.then()
        return done


@contextmanager
def held(writer: EnqueueWriter, crowd: ThreadPoolExecutor) -> Iterator[None]:
    """Somebody's transaction that stays open until the block ends, so that everybody else has to line up."""
    inside, go = threading.Event(), threading.Event()

    def linger() -> None:
        inside.set()
        assert go.wait(DEADLINE)

    items: Any = [Step(linger)]
    first = crowd.submit(writer.write, items)
    assert inside.wait(DEADLINE)
    try:
        yield
    finally:
        go.set()
        assert first.result(DEADLINE) == items


def jobs_of(store: Store) -> list[int]:
    return sorted(row.id for row in store.job_list(JobSearch(), limit=10_000).rows)
