"""worker_drain: a worker learns with its next heartbeat that it shall end."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.service_records import WorkerRow
from detent.store.contract import Store
from tests.contract.refusals import Untouched, refused
from tests.contract.workers.sample_workers import worker


def test_the_next_heartbeat_says_who_and_why(store: Store) -> None:
    """W1, R1: on record with actor and reason; other workers hear nothing."""
    store.worker_seen(worker(7))
    store.worker_seen(worker(8))
    row = store.worker_drain(7, "ben", "the machine is replaced")
    assert isinstance(row, WorkerRow)
    assert (row.drain_requested_at, row.drain_requested_by) == (store.now(), "ben")
    heard = store.worker_seen(worker(7))
    assert (heard.drain_requested_by, heard.drain_reason) == ("ben", "the machine is replaced")
    assert store.worker_seen(worker(8)).drain_requested_by is None
    (line,) = store.transitions("worker", "7")
    assert (line.from_state, line.to_state, line.trigger) == ("open", "draining", "drain")
    assert (line.actor, line.reason) == ("ben", "the machine is replaced")


def test_asked_once(store: Store, untouched: Untouched) -> None:
    """G8: the first request stands."""
    store.worker_seen(worker(7))
    first = store.worker_drain(7, "ben", None)
    with untouched():
        assert store.worker_drain(7, "cy", "again") == first
        refused(store.worker_drain(9, "cy", None), NotFound)


def test_another_worker_of_that_name_is_not_asked(store: Store) -> None:
    """W1: the next process has a number of its own."""
    store.worker_seen(worker(7))
    store.worker_drain(7, "ben", None)
    store.worker_gone(7)
    assert store.worker_seen(worker(8)).drain_requested_by is None
    assert store.worker_get(7) is None
