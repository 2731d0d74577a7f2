"""The flusher writes what it is given, whatever was asked of it before."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from detent.model.clock import SystemClock
from detent.model.records import Finish, NewEvent
from detent.store.contract import Store
from detent.store.open import open_store
from detent.worker.flusher import Flusher
from detent.worker.patience import Patience

SECONDS_MAX = 20
NO_JOB = 999


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    made = open_store(sqlite_url)
    made.ready()
    yield made
    made.close()


class Writer:
    """A flusher, and which leases it says are written; it can be held up while it writes."""

    def __init__(self, store: Store) -> None:
        self.leases: queue.Queue[list[int]] = queue.Queue()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        patience = Patience(SystemClock(), threading.Event())
        self.flusher = Flusher(store, "w1", patience, written=self._written, aborted=lambda _: None)

    def _written(self, leases: list[int]) -> None:
        self.leases.put(leases)
        self.may_go_on.wait(SECONDS_MAX)

    def next(self) -> list[int]:
        return self.leases.get(timeout=SECONDS_MAX)


def test_an_ending_after_a_flush_that_came_while_it_wrote_is_written(store: Store) -> None:
    """A flush with nothing to add left its hurry behind, and the next ending woke nobody: its job was held for ever."""
    writer = Writer(store)
    writer.may_go_on.clear()
    writer.flusher.end([Finish(NO_JOB, 1)], [5])
    assert writer.next() == [5]
    assert not writer.flusher.flush(timeout=0)
    writer.may_go_on.set()
    assert writer.flusher.flush(timeout=SECONDS_MAX)
    for lease in range(6, 12):
        writer.flusher.end([Finish(NO_JOB, 1)], [lease])
        assert writer.next() == [lease]
    assert writer.flusher.close(SECONDS_MAX)


def test_a_line_waits_for_company_and_a_flush_does_not(store: Store) -> None:
    """E6: lines are durable when flush returns."""
    writer = Writer(store)
    line = NewEvent(job_id=NO_JOB, attempt=None, level="info", message="hello", payload=None)
    writer.flusher.event(line)
    assert writer.flusher.flush(SECONDS_MAX)
    assert writer.flusher.backlog == 0
    assert writer.flusher.close(SECONDS_MAX)
