"""batch_step: targets and cursor move together, once."""

from __future__ import annotations

from detent.errors import InvalidInput, LeaseLost, NotFound, TransitionRace
from detent.model.batch_records import ActionPortion, Holder, Stepped
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import (
    APPLY,
    DRIVE,
    act,
    applied_run,
    previewed_run,
    run,
    states,
    stepping,
    targets,
    work,
)
from tests.contract.jobs.sample_jobs import LEASE, claim, enqueue, new_job, state
from tests.contract.refusals import Untouched, refused


def begun(store: Store) -> tuple[Holder, int]:
    """Whoever holds the driver that waits, and the action."""
    (driver,) = claim(store, tasks=[DRIVE])
    return (driver.job_id, driver.attempt), int(driver.payload.removeprefix('{"action":').removesuffix("}"))


def next_of(store: Store, action_id: int, limit: int) -> ActionPortion:
    """The next portion."""
    found = store.batch_portion(action_id, limit)
    assert isinstance(found, ActionPortion)
    return found


def test_a_portion_at_a_time(store: Store, clock: StoreClock) -> None:
    """B3: jobs, targets and cursor in one transaction; the run does not end before the action has."""
    made = previewed_run(store, ["a", "b", "c"])
    act(store, made.id)
    holder, action_id = begun(store)
    first = next_of(store, action_id, 2)
    jobs = stepping(store, first)
    clock.advance(5)
    answer = store.batch_step(holder, action_id, 0, first.to_cursor, jobs, first.last)
    assert answer == Stepped(action_id=action_id, cursor=2, moved=2, done=False)
    assert states(store, made.id) == {"a": "queued", "b": "queued", "c": "preview"}
    assert targets(store, made.id)["a"].apply_job_id == jobs[0].job.id
    assert targets(store, made.id)["a"].queued_at == clock.now()
    assert (run(store, made.id).state, run(store, made.id).queued) == ("queued", 2)
    work(store)
    assert (run(store, made.id).state, run(store, made.id).applied) == ("applying", 2)
    rest = next_of(store, action_id, 2)
    answer = store.batch_step(holder, action_id, 2, rest.to_cursor, stepping(store, rest), rest.last)
    assert answer == Stepped(action_id=action_id, cursor=3, moved=3, done=True)
    work(store)
    row = run(store, made.id)
    assert (row.state, row.applied, row.outstanding) == ("applied", 3, 0)


def test_a_step_whose_answer_was_lost(store: Store, untouched: Untouched) -> None:
    """B4: repeated, it changes nothing."""
    made = previewed_run(store, ["a", "b"])
    act(store, made.id)
    holder, action_id = begun(store)
    first = next_of(store, action_id, 1)
    jobs = stepping(store, first)
    store.batch_step(holder, action_id, 0, 1, jobs, False)
    with untouched():
        assert store.batch_step(holder, action_id, 0, 1, jobs, False) == Stepped(
            action_id=action_id, cursor=1, moved=1, done=False
        )
    rest = next_of(store, action_id, 9)
    more = stepping(store, rest)
    store.batch_step(holder, action_id, 1, 2, more, True)
    with untouched():
        answer = store.batch_step(holder, action_id, 1, 2, more, True)
        assert isinstance(answer, Stepped)
        assert answer.done


def test_another_place_than_the_cursor(store: Store, untouched: Untouched) -> None:
    made = previewed_run(store, ["a", "b", "c"])
    act(store, made.id)
    holder, action_id = begun(store)
    whole = next_of(store, action_id, 9)
    jobs = stepping(store, whole)
    with untouched():
        refused(store.batch_step(holder, action_id, 1, 3, jobs[1:], True), TransitionRace, expected="cursor 1")


def test_every_target_of_a_portion_gets_its_job(store: Store, untouched: Untouched) -> None:
    """B3: none is forgotten, and none gets one that it is not to have."""
    made = previewed_run(store, ["a", "b", "c"], same=["c"])
    act(store, made.id)
    holder, action_id = begun(store)
    whole = next_of(store, action_id, 9)
    jobs = stepping(store, whole)
    with untouched():
        refused(store.batch_step(holder, action_id, 0, 3, jobs[:1], True), InvalidInput, field="jobs")
        refused(store.batch_step(holder, action_id, 0, 1, jobs, True), InvalidInput, field="jobs")
    again = applied_run(store, ["x"], fails=["x"])
    act(store, again.id, "retry_failed")


def test_only_by_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """G3: a driver that lost its lease moves nothing."""
    made = previewed_run(store, ["a"])
    act(store, made.id)
    holder, action_id = begun(store)
    whole = next_of(store, action_id, 9)
    jobs = stepping(store, whole)
    with untouched():
        refused(store.batch_step((holder[0], 7), action_id, 0, 1, jobs, True), LeaseLost)
        refused(store.batch_step(holder, 99, 0, 1, jobs, True), NotFound)
    clock.advance(LEASE + 1)
    with untouched():
        refused(store.batch_step(holder, action_id, 0, 1, jobs, True), LeaseLost)


def test_a_refused_job_refuses_the_step(store: Store) -> None:
    made = previewed_run(store, ["a", "b"])
    act(store, made.id)
    holder, action_id = begun(store)
    whole = next_of(store, action_id, 9)
    good, bad = stepping(store, whole)
    taken = new_job(store, id=enqueue(store), payload="{}", task=APPLY, run_id=made.id)
    answer = store.batch_step(holder, action_id, 0, 2, [good, type(bad)(bad.n, taken)], True)
    assert isinstance(answer, Exception)
    assert states(store, made.id) == {"a": "preview", "b": "preview"}
    assert store.job_get([good.job.id]) == [None]


def test_a_retry_is_by_the_job_it_has(store: Store) -> None:
    """B4: its attempts begin anew."""
    made = applied_run(store, ["a", "b"], fails=["b"])
    act(store, made.id, "retry_failed")
    holder, action_id = begun(store)
    whole = next_of(store, action_id, 9)
    assert stepping(store, whole) == []
    answer = store.batch_step(holder, action_id, 0, whole.to_cursor, [], True)
    assert answer == Stepped(action_id=action_id, cursor=2, moved=1, done=True)
    job_id = targets(store, made.id)["b"].apply_job_id
    assert job_id is not None
    assert state(store, job_id) == "pending"
