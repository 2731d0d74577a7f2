"""job_left: a worker that drains waits for its own jobs, and for no parked workflow."""

from __future__ import annotations

from typing import Any

from detent.model.service_records import JobsLeft
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.graphs.sample_graphs import graph
from tests.contract.jobs.sample_jobs import abort, claim_one, enqueue, finish
from tests.contract.workflows.sample_workflows import begin, park, parked_for_signal, record, send, signal

TASK = "mail.send"


def is_left(store: Store, *tasks: str, **options: Any) -> bool:
    return store.job_left(tasks or [TASK], options.get("queues"), options.get("versions", {TASK: [1]})).found


def test_jobs_that_are_ready_running_or_due_later(store: Store, clock: StoreClock) -> None:
    """W1"""
    assert not is_left(store)
    enqueue(store, queue="mail")
    assert is_left(store)
    assert is_left(store, queues=["mail"])
    assert not is_left(store, queues=["other"])
    assert not is_left(store, "other.task")
    held = claim_one(store)
    assert is_left(store, queues=["mail"])
    assert not is_left(store, queues=["other"])
    abort(store, held, delay=60.0)
    assert is_left(store)
    clock.advance(61)
    store.job_promote(10)
    finish(store, claim_one(store))
    assert not is_left(store)


def test_parked_workflows_are_not_waited_for(store: Store) -> None:
    """Until one is woken."""
    held = begin(store)
    park(store, held, signal("go"))
    assert not is_left(store)
    send(store, held.job_id, "go")
    assert is_left(store)


def test_nodes_that_wait_for_a_dead_node_are_not_waited_for(store: Store) -> None:
    """F27: only a person can help. Once the dead node is retried, it is left itself."""
    run = graph(store, {"a": "", "b": "a"})
    assert is_left(store)
    run.claimed()
    assert is_left(store)
    run.fail("a")
    assert run.states() == "quarantined pending"
    assert not is_left(store)
    assert not is_left(store, "detent.graph")
    run.retry("a")
    assert is_left(store)
    run.claimed()
    run.succeed("a")
    assert is_left(store)


def test_workflows_of_other_versions_are_not_waited_for(store: Store) -> None:
    held = begin(store)
    record(store, held)
    abort(store, held)
    assert is_left(store)
    assert is_left(store, versions=None)
    assert not is_left(store, versions={TASK: [2]})
    assert not is_left(store, versions={})


def test_portions_of_those_that_wait(store: Store) -> None:
    """However many workflows are parked, a look reads `limit` of them."""
    parked = [parked_for_signal(store) for _ in range(3)]
    terms = ([TASK], None, {TASK: [1]})
    assert store.job_left(*terms, limit=2) == JobsLeft(False, parked[1])
    assert store.job_left(*terms, after=parked[1], limit=2) == JobsLeft(False, None)
    later = begin(store)
    abort(store, later, delay=60.0)
    assert store.job_left(*terms, limit=3) == JobsLeft(False, parked[2])
    assert store.job_left(*terms, after=parked[2], limit=3) == JobsLeft(True, later.job_id - 1)
    enqueue(store)
    assert store.job_left(*terms, limit=1) == JobsLeft(True, 0)
