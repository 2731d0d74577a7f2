"""batch_cancel: a run is cancelled at once if nothing is in flight, and otherwise when that has ended."""

from __future__ import annotations

import pytest

from detent.errors import IdConflict, InvalidTransition, NotFound, RunBusy
from detent.model.batch_records import BatchRunRow, Stepped
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import (
    APPLY,
    DRIVE,
    PLAN,
    REVERT,
    STOP,
    act,
    add,
    applied_run,
    broken,
    cancel,
    create,
    drive,
    finish,
    held,
    planned,
    previewed_run,
    run,
    states,
    targets,
    work,
)
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.contract.refusals import Untouched, refused


def last_line(store: Store, run_id: int) -> tuple[str | None, str, str, str, str | None]:
    line = store.transitions("batch_run", str(run_id))[-1]
    return line.from_state, line.to_state, line.trigger, line.actor, line.reason


def cancel_queued(store: Store, run_id: int) -> None:
    """What the driver of the cancel does."""
    ids = [target.apply_job_id for target in store.target_list(run_id, state="queued")]
    store.job_cancel([job_id for job_id in ids if job_id is not None], "cy", "a wrong list")


def test_a_preview_is_cancelled_at_once(store: Store, store_url: str) -> None:
    """B1: nothing is enqueued, since nothing waits; the complete preview can still be applied."""
    made = previewed_run(store, ["a", "b"])
    row = cancel(store, made.id)
    assert isinstance(row, BatchRunRow)
    assert (row.state, row.critical) == ("cancelled", "cancelled by cy: a wrong list")
    assert (row.cancel_requested_by, row.cancel_reason, row.finished_at) == ("cy", "a wrong list", row.moved_at)
    assert last_line(store, made.id) == ("preview", "cancelled", "cancel", "cy", "a wrong list")
    assert claim(store, tasks=[STOP]) == []
    assert broken(store, store_url) == []
    again = act(store, made.id)
    assert (again.state, again.critical, again.cancel_requested_at) == ("queued", None, None)
    drive(store)
    work(store)
    assert (run(store, made.id).state, run(store, made.id).applied) == ("applied", 2)


def test_a_plan_in_progress_adds_no_more_targets(store: Store, store_url: str) -> None:
    """B2: its job is left to the driver, and the run cannot be applied."""
    made = create(store)
    holder = held(store, PLAN)
    add(store, holder, made.id, 1, ["a"])
    assert cancel(store, made.id).state == "cancelled"
    refused(add(store, holder, made.id, 2, ["b"], last=True), RunBusy)
    assert len(claim(store, tasks=[STOP])) == 1
    refused(act(store, made.id), InvalidTransition)
    assert broken(store, store_url) == []


def test_a_queued_run_that_has_handed_out_nothing(store: Store, store_url: str) -> None:
    """B1, B3: it is cancelled at once, also if the job of its action was cancelled before, and its driver ends."""
    for stuck in (False, True):
        made = previewed_run(store, ["a", "b"])
        act(store, made.id)
        (driver,) = claim(store, tasks=[DRIVE])
        if stuck:
            store.job_cancel([driver.job_id], "ana", None)
        action_id = int(driver.payload.removeprefix('{"action":').removesuffix("}"))
        assert cancel(store, made.id).state == "cancelled"
        assert last_line(store, made.id) == ("queued", "cancelled", "cancel", "cy", "a wrong list")
        answer = store.batch_step((driver.job_id, driver.attempt), action_id, 0, 2, [], True)
        assert isinstance(answer, Stepped)
        assert answer.done
        finish(store, (driver.job_id, driver.attempt))
        assert states(store, made.id) == {"a": "preview", "b": "preview"}
    assert broken(store, store_url) == []


def test_a_run_that_applies_ends_when_nothing_is_in_flight(store: Store, store_url: str) -> None:
    """B1: targets in flight finish, those that wait have failed with the reason; no alert is raised. A retry goes
    on."""
    made = previewed_run(store, ["a", "b", "c"])
    act(store, made.id)
    drive(store)
    (one,) = claim(store, tasks=[APPLY], limit=1)
    row = cancel(store, made.id)
    assert (row.state, row.outstanding, row.queued, row.applying) == ("applying", 0, 2, 1)
    assert last_line(store, made.id) == ("applying", "applying", "request_cancel", "cy", "a wrong list")
    assert len(claim(store, tasks=[STOP])) == 1
    cancel_queued(store, made.id)
    assert run(store, made.id).state == "applying"
    finish(store, (one.job_id, one.attempt))
    row = run(store, made.id)
    assert (row.state, row.applied, row.failed, row.reconcile_at) == ("cancelled", 1, 2, None)
    assert last_line(store, made.id) == ("applying", "cancelled", "cancel", "cy", "a wrong list")
    errors = {target.error for target in targets(store, made.id).values() if target.state == "failed"}
    assert errors == {"Not begun: cancelled by cy: a wrong list"}
    assert store.alert_list() == []
    assert broken(store, store_url) == []
    again = act(store, made.id, "retry_failed")
    assert (again.state, again.cancel_requested_at) == ("applying", None)
    drive(store)
    work(store)
    assert (run(store, made.id).state, run(store, made.id).applied) == ("applied", 3)


def test_targets_that_were_handed_out_and_have_not_begun(store: Store, store_url: str) -> None:
    """B1: no target was applied, and each is on record as cancelled with its job."""
    made = previewed_run(store, ["a", "b"])
    act(store, made.id)
    drive(store)
    assert cancel(store, made.id).state == "queued"
    cancel_queued(store, made.id)
    assert (run(store, made.id).state, states(store, made.id)) == ("cancelled", {"a": "failed", "b": "failed"})
    assert broken(store, store_url) == []


def test_a_retry_of_one_target_by_its_job(store: Store, store_url: str) -> None:
    """B4: the run goes on, and the cancel is over."""
    made = previewed_run(store, ["a", "b"])
    act(store, made.id)
    drive(store)
    cancel(store, made.id)
    cancel_queued(store, made.id)
    job_id = targets(store, made.id)["a"].apply_job_id
    assert job_id is not None
    store.job_retry([job_id], "ana", None)
    work(store)
    row = run(store, made.id)
    assert (row.state, row.applied, row.failed, row.cancel_requested_at, row.critical) == ("partial", 1, 1, None, None)
    assert broken(store, store_url) == []


def test_what_was_applied_can_be_rolled_back(store: Store, store_url: str) -> None:
    """B6"""
    made = applied_run(store, ["a", "b"], fails=["b"])
    act(store, made.id, "retry_failed")
    assert cancel(store, made.id).state == "cancelled"
    assert act(store, made.id, "roll_back").state == "partial"
    drive(store)  # the action that was cancelled: it has nothing to do
    drive(store)
    work(store, REVERT)
    assert (run(store, made.id).state, states(store, made.id)) == ("rolled_back", {"a": "rolled_back", "b": "failed"})
    assert broken(store, store_url) == []


def test_cancelled_once(store: Store, untouched: Untouched) -> None:
    """G8: the first cancel stands, whether the run has ended or not."""
    made = previewed_run(store, ["a"])
    act(store, made.id)
    drive(store)
    first = cancel(store, made.id)
    with untouched():
        assert cancel(store, made.id, "dan", "another reason") == first
    cancel_queued(store, made.id)
    with untouched():
        assert cancel(store, made.id, "dan", "another reason").cancel_requested_by == "cy"


@pytest.mark.parametrize("ended", ["applied", "partial", "failed", "rolled_back"])
def test_a_run_that_has_ended_is_refused(store: Store, untouched: Untouched, ended: str) -> None:
    """B1"""
    fails = {"partial": ["a"], "failed": ["a", "b"]}.get(ended, [])
    made = applied_run(store, ["a", "b"], fails=fails)
    if ended == "rolled_back":
        act(store, made.id, "roll_back")
        drive(store)
        work(store, REVERT)
    with untouched():
        answer = store.batch_cancel(made.id, new_job(store, id=77, run_id=made.id), "cy", None)
        assert refused(answer, InvalidTransition).from_state == ended
        refused(store.batch_cancel(404, new_job(store, id=77), "cy", None), NotFound)


def test_a_driver_whose_id_is_taken_undoes_the_cancel(store: Store, untouched: Untouched) -> None:
    """J3: nothing is half done."""
    made = planned(store, ["a"])
    taken = new_job(store)
    store.job_enqueue([taken])
    with untouched():
        refused(store.batch_cancel(made.id, new_job(store, id=taken.id, task=STOP, run_id=made.id), "cy"), IdConflict)


def test_retention_deletes_a_cancelled_run(store: Store, clock: StoreClock) -> None:
    """J16: also one whose preview was not complete."""
    made = planned(store, ["a"])
    cancel(store, made.id)
    clock.advance(60)
    assert store.batch_prune(clock.now(), 0, 100, "retention").jobs == 1
    assert store.batch_get(made.id) is None
