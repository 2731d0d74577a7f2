"""result_drop: results that are kept for a time only."""

from __future__ import annotations

from detent.model.records import JobPlace, ResultsDropped
from detent.model.service_records import TaskTimes
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim_one, enqueue, finish, job
from tests.contract.refusals import Untouched


def with_result(store: Store, result: str | None = '"kept"', task: str = "mail.send") -> int:
    job_id = enqueue(store, task=task)
    finish(store, claim_one(store, tasks=[task]), result)
    return job_id


def test_the_result_goes_and_the_job_stays(store: Store, clock: StoreClock) -> None:
    """J13: when the time is over that its task says, and not before; nothing else of the job changes."""
    store.task_times_put([TaskTimes(task="mail.send", result_ttl=60.0)])
    first, other = with_result(store), with_result(store, task="mail.drop")
    clock.advance(30)
    later = with_result(store)
    assert store.result_drop(None, 10) == ResultsDropped(0, None)
    clock.advance(30)
    before = job(store, first)
    assert store.result_drop(None, 10) == ResultsDropped(1, None)
    after = job(store, first)
    assert (after.result, after.result_dropped_at) == (None, clock.now())
    changed = {name for name in after.__struct_fields__ if getattr(after, name) != getattr(before, name)}
    assert changed == {"result", "result_dropped_at"}
    assert [job(store, one).result for one in (other, later)] == ['"kept"', '"kept"']
    assert store.verify() == []


def test_what_has_no_result_to_drop_is_left_alone(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3: no result, none any more, not succeeded, or no time for it."""
    store.task_times_put([TaskTimes(task="mail.send", result_ttl=1.0), TaskTimes(task="mail.drop", stale_after=1.0)])
    with_result(store)
    with_result(store, None)
    with_result(store, task="mail.drop")
    enqueue(store)
    abort(store, claim_one(store), error="boom", fatal=True)
    enqueue(store)
    clock.advance(10)
    store.result_drop(None, 100)
    with untouched():
        assert store.result_drop(None, 100) == ResultsDropped(0, None)


def test_it_walks_in_portions(store: Store, clock: StoreClock) -> None:
    store.task_times_put([TaskTimes(task="mail.send", result_ttl=1.0)])
    jobs = [with_result(store) for _ in range(3)]
    clock.advance(1)
    second = JobPlace(job(store, jobs[1]).created_at, jobs[1])
    assert store.result_drop(None, 2) == ResultsDropped(2, second)
    assert store.result_drop(second, 2) == ResultsDropped(1, None)
