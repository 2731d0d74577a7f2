"""operation_step: portion by portion, each in one transaction with how far it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from detent.errors import NotFound
from detent.model.service_records import OperationRow
from detent.store.contract import Store
from detent.store.jobs.filters import JobFilter
from detent.testing.stores import StoreClock, another_store
from tests.contract.concurrent_callers import PATIENCE
from tests.contract.jobs.sample_jobs import abort, claim_one, commit, enqueue, job, quarantined, state, succeeded
from tests.contract.operations.sample_operations import finished, operation
from tests.contract.refusals import Untouched
from tests.contract.refusals import refused as is_refused


def test_a_portion_at_a_time_and_only_what_fits(store: Store, clock: StoreClock) -> None:
    """J14: later jobs are not touched."""
    mine = [quarantined(store, queue="mail") for _ in range(3)]
    other = quarantined(store)
    row = store.operation_start(operation(store, "retry", job_state="quarantined", queue="mail"))
    later = quarantined(store, queue="mail")
    first = store.operation_step(row.id, 2)
    assert isinstance(first, OperationRow)
    assert (first.state, first.looked, first.changed, first.after_id) == ("running", 2, 2, mine[1])
    assert [state(store, one) for one in mine] == ["pending", "pending", "quarantined"]
    clock.advance(1)
    last = finished(store, row.id)
    assert (last.state, last.looked, last.changed, last.refused) == ("done", 4, 3, 0)
    assert last.finished_at == clock.now()
    assert [state(store, one) for one in (*mine, other, later)] == ["pending"] * 3 + ["quarantined"] * 2
    line = store.transitions("job", str(mine[0]))[-1]
    assert (line.trigger, line.actor) == ("retry", "ana")
    assert [one.to_state for one in store.transitions("operation", str(row.id))] == ["running", "done"]


def one_of_each(store: Store) -> dict[str, int]:
    """A job in every state, and a running one that has committed."""
    jobs = {"succeeded": succeeded(store), "quarantined": quarantined(store)}
    jobs["failed"] = enqueue(store, dead_letter=False)
    abort(store, claim_one(store), fatal=True)
    jobs["cancelled"] = enqueue(store)
    store.job_cancel([jobs["cancelled"]], "bob")
    jobs["running"] = enqueue(store)
    claim_one(store)
    jobs["committed"] = enqueue(store)
    store.job_commit(commit(claim_one(store)))
    jobs["pending"] = enqueue(store)
    return jobs


@pytest.mark.parametrize(
    ("action", "changed", "refused"),
    [
        ("retry", {"quarantined", "failed", "cancelled"}, 3),
        ("discard", {"quarantined", "failed"}, 4),
        ("cancel", {"running", "pending"}, 4),
        ("move", {"pending"}, 6),
    ],
)
def test_what_the_verb_refuses_is_counted(store: Store, action: str, changed: set[str], refused: int) -> None:
    """J14: what is there already counts as neither."""
    jobs = one_of_each(store)
    before = {name: job(store, job_id) for name, job_id in jobs.items()}
    row = finished(store, store.operation_start(operation(store, action, to_queue="bulk")).id)
    assert (row.looked, row.changed, row.refused) == (7, len(changed), refused)
    assert {name for name, job_id in jobs.items() if job(store, job_id) != before[name]} == changed


def test_one_that_has_ended_stays_as_it_is(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3"""
    row = finished(store, store.operation_start(operation(store)).id)
    clock.advance(1)
    with untouched():
        assert store.operation_step(row.id, 10) == row
        is_refused(store.operation_step(999, 10), NotFound, entity="operation", entity_id="999")


def test_many_may_step_at_once(store: Store, store_url: str, clock: StoreClock) -> None:
    """J14: each job is met once."""
    for _ in range(20):
        enqueue(store)
    row = store.operation_start(operation(store, "cancel", job_state="pending"))
    together = Barrier(3)

    def step(_: int) -> int:
        with closing(another_store(store_url, clock)) as elsewhere:
            together.wait(PATIENCE)
            return finished(elsewhere, row.id, 3).changed

    with ThreadPoolExecutor(3) as callers:
        assert set(callers.map(step, range(3))) == {20}
    assert store.job_count(JobFilter(state="cancelled")) == 20


def dead(store: Store, **overrides: Any) -> int:
    """A job that failed for its own reason."""
    error = overrides.pop("error", "no")
    job_id = enqueue(store, **overrides)
    abort(store, claim_one(store, worker=overrides.get("tenant", "ana")), fatal=True, error=error)
    return job_id


@pytest.mark.parametrize(
    "chosen",
    [
        {"key": "k"},
        {"correlation_id": "c"},
        {"run_id": 77},
        {"error": "refused"},
        {"metadata": '{"order":[17]}'},
        {"since": timedelta(seconds=10), "until": timedelta(seconds=20)},
        {"key": "k", "correlation_id": "c", "run_id": 77, "error": "refused"},
    ],
)
def test_jobs_are_chosen_by_all_that_a_search_knows(store: Store, clock: StoreClock, chosen: dict[str, Any]) -> None:
    """J14: one that fits, between others that do not; a portion at a time."""
    began = clock.now()
    others = [dead(store, key="other", correlation_id="other", metadata='{"order": 18}', run_id=78) for _ in "a"]
    clock.advance(10)
    mine = dead(store, key="k", correlation_id="c", run_id=77, metadata='{"order": 17}', error="it was refused")
    clock.advance(10)
    others += [dead(store, metadata='{"order": 19}') for _ in range(3)]
    times = {name: began + value for name, value in chosen.items() if isinstance(value, timedelta)}
    row = store.operation_start(operation(store, "retry", **{**chosen, **times}))
    done = finished(store, row.id)
    assert (done.changed, done.refused, done.state) == (1, 0, "done")
    assert [state(store, one) for one in (mine, *others)] == ["pending"] + ["quarantined"] * 4
    assert store.operation_get(row.id) == done
    if chosen.keys() & {"key", "correlation_id", "run_id"}:
        assert done.looked == 1, "an index tells where such jobs are"


def test_jobs_of_a_worker_are_chosen(store: Store) -> None:
    """J14: by whom an attempt was made, or who holds the job."""
    held, other = enqueue(store), enqueue(store)
    claim_one(store, worker="bob", limit=1)
    row = store.operation_start(operation(store, "cancel", worker="bob"))
    assert finished(store, row.id).changed == 1
    assert [job(store, one).cancel_requested_at is None for one in (held, other)] == [False, True]


def test_a_key_that_no_job_has_ends_at_once(store: Store) -> None:
    for _ in range(5):
        enqueue(store)
    row = store.operation_start(operation(store, "cancel", key="nothing"))
    done = store.operation_step(row.id, 2)
    assert isinstance(done, OperationRow)
    assert (done.state, done.looked, done.changed) == ("done", 0, 0)
