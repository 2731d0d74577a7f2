"""job_finish: the attempt is done, the job succeeds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.errors import LeaseLost
from detent.model.records import ExecutionRow, Finish, Finished
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, commit, enqueue, finish, job, state
from tests.contract.refusals import Untouched, refused


def test_the_job_succeeds(store: Store, clock: StoreClock) -> None:
    """J1: started, committed and done in one write; the execution's row is its record."""
    job_id = enqueue(store)
    leased = clock.now()
    held = claim_one(store)
    clock.advance(4)
    assert finish(store, held, '"sent"') == Finished(job_id, 1)
    row = job(store, job_id)
    assert (row.state, row.result, row.error, row.attempt, row.ended) == ("succeeded", '"sent"', None, 1, 1)
    assert row.started_at == row.committed_at == row.finished_at == clock.now()
    assert store.job_executions(job_id) == [
        ExecutionRow(
            job_id=job_id,
            attempt=1,
            state="done",
            worker="ana",
            leased_at=leased,
            started_at=clock.now(),
            committed_at=clock.now(),
            done_at=clock.now(),
            aborted_at=None,
            outcome="done",
            error=None,
            next_state="succeeded",
            next_due_at=None,
            counted=True,
            lease_id=None,
            expires_at=None,
            suspect=False,
        )
    ]


def test_times_already_on_record_stay(store: Store, clock: StoreClock) -> None:
    """J1: start and commit keep their own times."""
    job_id = enqueue(store)
    held = claim_one(store)
    times = []
    for step in (
        lambda: store.job_start([(job_id, 1)]),
        lambda: store.job_commit(commit(held)),
        lambda: finish(store, held),
    ):
        times.append(clock.advance(1))
        step()
    row = job(store, job_id)
    assert [row.started_at, row.committed_at, row.finished_at] == times
    (execution,) = store.job_executions(job_id)
    assert [execution.started_at, execution.committed_at, execution.done_at] == times


SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("result", [None, '"sent"', '"a:b"'])
@pytest.mark.parametrize(("after", "expected"), [(0.0, 0.0), (0.75, 0.75), (4.0, 4.0), (3600.0, 4.0)])
def test_the_start_is_when_the_function_was_called(
    store: Store, clock: StoreClock, after: float, expected: float, result: str | None
) -> None:
    """R2: 0.6 s of work was on record with start and end at the same moment. Never later than the end."""
    job_id, other = enqueue(store), enqueue(store)
    leased_at = clock.now()
    held = claim(store, limit=2)
    clock.advance(4)
    ends = [Finish(held[0].job_id, 1, result, after), Finish(held[1].job_id, 1)]
    assert store.job_finish(ends, "ana") == [Finished(job_id, 1), Finished(other, 1)]
    row = job(store, job_id)
    assert (row.started_at, row.finished_at, row.result) == (leased_at + expected * SECOND, clock.now(), result)
    (execution,) = store.job_executions(job_id)
    assert (execution.started_at, execution.done_at) == (leased_at + expected * SECOND, clock.now())
    assert (job(store, other).started_at, job(store, other).result) == (clock.now(), None)


def test_an_ending_corrects_a_start_that_came_late_and_no_earlier_one(store: Store, clock: StoreClock) -> None:
    """R2: an event or a renewal puts a start on record when it comes; the ending knows when the function was called."""
    for started, after, expected in ((3, 1.0, 1), (1, 2.0, 1)):
        job_id = enqueue(store)
        leased_at = clock.now()
        held = claim_one(store)
        clock.advance(started)
        store.job_start([(job_id, 1)])
        clock.advance(4 - started)
        store.job_finish([Finish(held.job_id, held.attempt, None, after)], "ana")
        assert job(store, job_id).started_at == leased_at + expected * SECOND


def test_the_result_of_the_commit_is_kept(store: Store) -> None:
    """J13: unless the finish has one of its own."""
    for own, expected in ((None, "1"), ("2", "2")):
        job_id = enqueue(store)
        held = claim_one(store)
        store.job_commit(commit(held, result="1"))
        finish(store, held, own)
        assert job(store, job_id).result == expected


def test_finishing_again_answers_the_same_again(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3: no second side effect, no change of timestamps, also after the lease has ended."""
    job_id = enqueue(store)
    held = claim_one(store)
    finish(store, held, "1")
    clock.advance(LEASE + 1)
    with untouched():
        assert finish(store, held, "2") == Finished(job_id, 1)


def test_a_committed_attempt_may_be_finished_by_anyone(store: Store, clock: StoreClock) -> None:
    """C6: that is recovery: no lease is needed once the commit is on record."""
    job_id = enqueue(store)
    held = claim_one(store)
    store.job_commit(commit(held, result="1"))
    clock.advance(LEASE + 1)
    assert finish(store, held) == Finished(job_id, 1)
    assert (state(store, job_id), job(store, job_id).result) == ("succeeded", "1")


def test_many_at_once_answer_one_by_one(store: Store, clock: StoreClock) -> None:
    """C4: one zombie among many spoils nothing for the others, and its result is not stored."""
    ids = [enqueue(store) for _ in range(6)]
    zombie = claim(store, limit=2, lease=5.0)
    clock.advance(6)
    store.lease_reap(10)
    second = claim(store, limit=1)
    rest = claim(store)
    held = {each.job_id: each for each in [*second, *rest]}
    items = [Finish(each.job_id, each.attempt, '"zombie"') for each in zombie]
    items += [Finish(job_id, held[job_id].attempt, str(job_id)) for job_id in ids]
    items.append(Finish(10**12, 1))
    answers = store.job_finish(items, "ana")
    for answer, each in zip(answers, zombie, strict=False):
        refused(answer, LeaseLost, job_id=each.job_id, attempt=1)
    assert answers[2:-1] == [Finished(job_id, held[job_id].attempt) for job_id in ids]
    refused(answers[-1], LeaseLost, job_id=10**12, attempt=1, found="no such job")
    assert [row.result for row in store.job_get(ids) if row] == [str(job_id) for job_id in ids]
    assert store.job_finish([], "ana") == []


@pytest.mark.parametrize("first", ["lives", "expired"])
def test_many_under_several_leases_each_by_its_own(store: Store, clock: StoreClock, first: str) -> None:
    """C4: a lease that lives is no excuse for the jobs of one that has ended, whichever of them is asked for first."""
    for _ in range(30):
        enqueue(store)
    expired = [*claim(store, limit=10, lease=5.0), *claim(store, limit=10, lease=5.0)]
    lives = claim(store)
    clock.advance(6)
    every = [*lives, *expired] if first == "lives" else [*expired[:10], *lives, *expired[10:]]
    answers = store.job_finish([Finish(each.job_id, each.attempt) for each in every], "ana")
    for each, answer in zip(every, answers, strict=True):
        if each in lives:
            assert answer == Finished(each.job_id, 1)
        else:
            refused(answer, LeaseLost, job_id=each.job_id, attempt=1, found="its lease has expired")
    assert [state(store, each.job_id) for each in lives] == ["succeeded"] * 10
    assert [state(store, each.job_id) for each in expired] == ["running"] * 20


def test_only_by_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C4: pending, ended otherwise, or expired: refused."""
    job_id = enqueue(store)
    held = claim_one(store)
    abort(store, held)
    with untouched():
        refused(finish(store, held), LeaseLost, job_id=job_id, attempt=1, found="the job is pending")
    expired = claim_one(store)
    clock.advance(LEASE)
    with untouched():
        refused(finish(store, expired), LeaseLost, job_id=job_id, attempt=2, found="its lease has expired")


@pytest.mark.parametrize("retried", [False, True], ids=["one attempt", "several attempts"])
def test_jobs_with_and_without_a_start_time_end_together(store: Store, clock: StoreClock, retried: bool) -> None:
    """J1, J3: every job gets its own start time and its own answer, whatever the order of the items."""
    if retried:
        for _ in range(3):
            enqueue(store)
        for one in claim(store):
            abort(store, one, "released")
    for _ in range(6):
        enqueue(store)
    held = claim(store)
    lost = held[3]
    leased = clock.now()
    clock.advance(9)
    items = [Finish(one.job_id, one.attempt, begun_after=n / 4 if n % 2 else None) for n, one in enumerate(held)]
    items[3] = Finish(lost.job_id, lost.attempt + 1, begun_after=0.75)
    answers = store.job_finish(items, "ana")
    assert [place for place, answer in enumerate(answers) if isinstance(answer, LeaseLost)] == [3]
    refused(answers[3], LeaseLost)
    for place, one in enumerate(held):
        if one is not lost:
            begun = leased + timedelta(seconds=place / 4) if place % 2 else clock.now()
            assert answers[place] == Finished(one.job_id, one.attempt)
            assert job(store, one.job_id).started_at == begun
    assert job(store, lost.job_id).state == "running"
