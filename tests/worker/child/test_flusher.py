"""The flusher writes what it is given, whatever was asked of it before."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from detent.model.clock import SystemClock
from detent.model.limit_records import Charge, NewLimit
from detent.model.records import Abort, Finish, NewEvent
from detent.store.contract import Store
from detent.store.open import open_store
from detent.worker.child.flusher import Flusher
from detent.worker.outage_backoff import OutageBackoff
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue, state
from tests.deadlines import scaled

SECONDS_MAX = scaled(20)
NO_JOB = 999
LEASE = 30.0


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
        backoff = OutageBackoff(SystemClock(), threading.Event())
        self.flusher = Flusher(store, "w1", backoff, lease=LEASE, written=self._written, aborted=lambda _: None)

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


def outcomes(store: Store, job_id: int) -> list[tuple[str | None, bool | None]]:
    return [(one.outcome, one.counted) for one in store.job_executions(job_id)]


def written(store: Store, *endings: Finish | Abort, line: NewEvent | None = None) -> None:
    writer = Writer(store)
    if line is not None:
        writer.flusher.event(line)
    writer.flusher.end(endings, [])
    assert writer.flusher.close(SECONDS_MAX)


def test_what_was_done_while_the_database_was_away_is_not_thrown_away(store_and_clock: Any) -> None:
    """J7: its lease has run out, and its renewal has not come through yet; nobody else has it, so it counts."""
    store, clock = store_and_clock
    done, ended = enqueue(store), enqueue(store)
    claim(store, limit=2, lease=LEASE)
    clock.advance(3 * LEASE)
    line = NewEvent(job_id=done, attempt=1, level="info", message="hello", payload=None)
    written(store, Finish(done, 1), Abort(job_id=ended, attempt=1, outcome="released"), line=line)
    assert (state(store, done), outcomes(store, done)) == ("succeeded", [("done", True)])
    assert (state(store, ended), outcomes(store, ended)) == ("pending", [("released", False)])
    assert [one.message for one in store.job_events(done)] == ["hello"]
    assert store.verify() == []


def test_what_was_taken_away_stays_lost(store_and_clock: Any) -> None:
    """G3: reaped, and held by another now: the late ending changes nothing, and no lease of a stranger's is renewed."""
    store, clock = store_and_clock
    job_id = enqueue(store)
    claim_one(store, lease=LEASE)
    clock.advance(3 * LEASE)
    store.lease_reap(10)
    claim_one(store, lease=LEASE)
    clock.advance(2 * LEASE)
    written(store, Finish(job_id, 1))
    assert (state(store, job_id), outcomes(store, job_id)[0]) == ("running", ("expired", False))
    assert store.lease_reap(10).aborted == (job_id,)


def test_what_attempts_cost_is_written_before_they_end(store: Store) -> None:
    """B5: in one go with the ending, so nobody begins for tokens that are spent; one that nobody holds is let go."""
    store.limit_put(NewLimit(key="shop", rate=0.001, burst=10.0, tasks=("mail.send",)))
    enqueue(store, cost=4)
    held = claim_one(store)
    writer = Writer(store)
    writer.flusher.charge(Charge(NO_JOB, 1, 5.0))
    writer.flusher.charge(Charge(held.job_id, held.attempt, 7.0))
    writer.flusher.end([Finish(held.job_id, held.attempt)], [1])
    assert writer.flusher.close(SECONDS_MAX)
    assert (state(store, held.job_id), round(store.limit_list()[0].tokens)) == ("succeeded", 3)
