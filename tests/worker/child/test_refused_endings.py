"""One ending, or one event, that the database refuses harms its own job only."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from detent.model.clock import SystemClock
from detent.model.records import Abort, Aborted, Commit, Finish, NewEvent
from detent.store.contract import Store
from detent.testing.stores import is_sqlite, plain_connection, table
from detent.worker.child.flusher import Flusher
from detent.worker.child.write_batch import WriteBatch
from detent.worker.outage_backoff import OutageBackoff
from tests.contract.jobs.sample_jobs import claim, enqueue, job, state
from tests.deadlines import scaled
from tests.store.invariants.owner import Owner

SECONDS_MAX = scaled(30)

_SQLITE = "CREATE TRIGGER refuse BEFORE INSERT ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, 'not this one'); END"
_POSTGRES = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = 'check_violation'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION refuse()
"""


def refuse(url: str, name: str, when: str) -> None:
    """Let the database refuse some rows of a table of the record."""
    sql = (_SQLITE if is_sqlite(url) else _POSTGRES).format(table=table(url, name), when=when)
    with closing(plain_connection(url)) as connection:
        connection.execute(sql)
        connection.commit()


class Flushed:
    """What a flusher said of what it was given."""

    def __init__(self, store: Store) -> None:
        self.leases: list[int] = []
        self.aborted: list[Aborted] = []
        backoff = OutageBackoff(SystemClock(), threading.Event())
        self._flusher = Flusher(
            store, "w1", backoff, lease=30.0, written=self.leases.extend, aborted=self.aborted.append
        )

    def write(self, endings: Sequence[Finish | Abort], leases: list[int], events: Sequence[NewEvent] = ()) -> Any:
        for line in events:
            self._flusher.event(line)
        self._flusher.end(endings, leases)
        assert self._flusher.close(SECONDS_MAX), "it still tries to write what is refused"
        return dict(self._flusher.tally)


def event(job_id: int, message: str = "hello") -> NewEvent:
    return NewEvent(job_id=job_id, attempt=1, level="info", message=message, payload=None)


def failed(job_id: int) -> Abort:
    return Abort(job_id=job_id, attempt=1, outcome="error", error="no", fatal=True)


@pytest.fixture
def ids(store: Store) -> list[int]:
    made = [enqueue(store) for _ in range(9)]
    claim(store, limit=9)
    return made


def test_an_ending_that_is_refused_costs_its_neighbours_nothing(
    store: Store, store_url: str, ids: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    """G6: the flusher tried the whole batch for ever, and no ending of the process was written any more."""
    culprit = ids[4]
    refuse(store_url, "execution", f"NEW.job_id = {culprit}")
    store.job_commit(Commit(job_id=ids[8], attempt=1))
    endings: list[Finish | Abort] = [Finish(one, 1) for one in ids[:7]]
    # The last one was cut short after its commit: it succeeds.
    endings += [failed(ids[7]), failed(ids[8])]
    flushed = Flushed(store)
    with caplog.at_level(logging.WARNING):
        tally = flushed.write(endings, [1], [event(one) for one in ids])
    states = [state(store, one) for one in ids]
    assert states == ["succeeded"] * 4 + ["running"] + ["succeeded"] * 2 + ["quarantined", "succeeded"]
    assert [len(store.job_events(one)) for one in ids] == [1] * 9
    assert (tally, flushed.leases) == ({"succeeded": 7, "quarantined": 1}, [1])
    assert [one.job_id for one in flushed.aborted] == [ids[7]], "the hook of an innocent job was not told"
    said = [record.getMessage() for record in caplog.records]
    assert said
    assert all(f"job {culprit}" in line and "not this one" in line for line in said)


def test_an_ending_that_is_refused_becomes_a_crash_that_says_why(store: Store, store_url: str, ids: list[int]) -> None:
    """J7: it counts and is tried again, and a person finds the cause on the record."""
    refuse(store_url, "execution", f"NEW.job_id = {ids[0]} AND NEW.outcome = 'done'")
    tally = Flushed(store).write([Finish(one, 1) for one in ids], [1])
    assert (state(store, ids[0]), tally) == ("pending", {"succeeded": 8, "retried": 1})
    (attempt,) = store.job_executions(ids[0])
    assert (attempt.outcome, attempt.counted) == ("crashed", True)
    assert attempt.error is not None
    assert attempt.error.startswith("the database refused to record how the attempt ended: GuardViolation")


def test_a_committed_job_whose_ending_is_refused_once_still_succeeds(
    store: Store, store_url: str, ids: list[int]
) -> None:
    """C1: the crash in place of its ending finds the commit."""
    refuse(store_url, "event", f"NEW.job_id = {ids[0]}")
    store.job_commit(Commit(job_id=ids[0], attempt=1, result="7"))
    tally = Flushed(store).write([failed(ids[0])], [1], [event(ids[0])])
    assert (state(store, ids[0]), job(store, ids[0]).result, tally) == ("succeeded", "7", {"succeeded": 1})


def test_a_second_success_is_refused_alone_and_not_charged(store: Store, store_url: str, ids: list[int]) -> None:
    """C1: by damage a plain function of a committed job ran again. Its neighbours end, and it is given back."""
    with closing(Owner(store_url)) as owner:
        owner.plant(
            "INSERT INTO {execution} "
            "(job_id, attempt, worker, leased_at, started_at, committed_at, done_at, outcome, next_state, counted) "
            "SELECT id, 9, 'eve', leased_at, leased_at, leased_at, leased_at, 'done', 'succeeded', TRUE "
            f"FROM {{job}} WHERE id = {ids[4]}",
        )
    tally = Flushed(store).write([Finish(one, 1) for one in ids], [1])
    assert [state(store, one) for one in ids] == ["succeeded"] * 4 + ["pending"] + ["succeeded"] * 4
    (attempt, _) = store.job_executions(ids[4])
    assert (attempt.outcome, attempt.counted) == ("released", False)
    assert (tally["succeeded"], sum(tally.values())) == (8, 9)


def test_an_event_that_is_refused_does_not_take_its_job_with_it(store: Store, store_url: str, ids: list[int]) -> None:
    refuse(store_url, "event", "NEW.message = 'bad'")
    events = [event(ids[0], text) for text in ("one", "bad", "two")] + [event(ids[1])]
    tally = Flushed(store).write([Finish(one, 1) for one in ids[:2]], [], events)
    assert tally == {"succeeded": 2}
    assert [one.message for one in store.job_events(ids[0])] == ["one", "two"]


def test_a_batch_is_taken_apart_job_by_job_and_then_item_by_item() -> None:
    """Each step writes all items again once: with one culprit among n jobs that is about log n tries."""
    batch = WriteBatch(
        events=[event(1), event(2), event(1, "more")], finishes=[Finish(2, 1), Finish(3, 1)], aborts=[failed(1)]
    )
    first, rest = batch.halves()
    assert {item.job_id for item in first.items} == {1}
    assert {item.job_id for item in rest.items} == {2, 3}
    assert first.size + rest.size == batch.size
    assert [part.items for part in first.halves()] == [[event(1)], [event(1, "more"), failed(1)]]
    assert WriteBatch(finishes=[Finish(1, 1)]).halves() == []
    assert WriteBatch().halves() == []
