"""batch_stop: a critical error ends the open action, and the run fails when what is in flight has ended."""

from __future__ import annotations

from detent.errors import LeaseLost, NotFound
from detent.model.batch_records import ActionPortion, BatchRunRow, Holder, Stepped
from detent.model.records import Abort
from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import (
    APPLY,
    DRIVE,
    act,
    applied_run,
    drive,
    finish,
    held,
    previewed_run,
    run,
    states,
    stepping,
    targets,
    work,
)
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.contract.refusals import Untouched, refused

STOP = "detent.batch.stop"


def stop(store: Store, holder: Holder, run_id: int, why: str = "no way in") -> object:
    """Stop the run; the answer."""
    return store.batch_stop(holder, run_id, why, new_job(store, task=STOP, run_id=run_id))


def fail(store: Store, holder: Holder) -> None:
    """The attempt that met the critical error ends."""
    store.job_abort(
        [Abort(job_id=holder[0], attempt=holder[1], outcome="error", error="Critical: no way in", fatal=True)], "ana"
    )


def cancel_queued(store: Store, run_id: int) -> None:
    """What the driver of the stop does."""
    ids = [target.apply_job_id for target in store.target_list(run_id, state="queued")]
    store.job_cancel([job_id for job_id in ids if job_id is not None], "system", "no way in")


def test_a_stopped_run_has_failed_when_nothing_is_in_flight(store: Store) -> None:
    """B1: with that reason, though some targets were applied; a retry goes on."""
    made = previewed_run(store, ["a", "b", "c", "d"])
    act(store, made.id)
    drive(store)
    one, two, three = claim(store, tasks=[APPLY], limit=3)
    store.job_abort([Abort(job_id=three.job_id, attempt=three.attempt, outcome="snoozed", delay=0.0)], "ana")
    row = stop(store, (one.job_id, one.attempt), made.id)
    assert isinstance(row, BatchRunRow)
    assert (row.state, row.critical, row.outstanding) == ("applying", "no way in", 0)
    assert len(claim(store, tasks=[STOP])) == 1
    fail(store, (one.job_id, one.attempt))
    cancel_queued(store, made.id)
    assert run(store, made.id).state == "applying"
    finish(store, (two.job_id, two.attempt))
    row = run(store, made.id)
    assert (row.state, row.critical, row.applied, row.failed) == ("failed", "no way in", 1, 3)
    never = [target for target in targets(store, made.id).values() if not target.attempts]
    assert {target.error for target in never} == {"Not begun: no way in"}
    line = store.transitions("batch_run", str(made.id))[-1]
    assert (line.to_state, line.trigger, line.reason) == ("failed", "fail", "no way in")
    again = act(store, made.id, "retry_failed")
    assert (again.state, again.critical) == ("applying", None)
    drive(store)
    work(store)
    assert (run(store, made.id).state, run(store, made.id).applied) == ("applied", 4)


def test_the_action_hands_out_no_more(store: Store, untouched: Untouched) -> None:
    """B3: its driver finds that it has ended."""
    made = previewed_run(store, ["a", "b"])
    act(store, made.id)
    (driver,) = claim(store, tasks=[DRIVE])
    action_id = int(driver.payload.removeprefix('{"action":').removesuffix("}"))
    first = store.batch_portion(action_id, 1)
    assert isinstance(first, ActionPortion)
    store.batch_step((driver.job_id, driver.attempt), action_id, 0, 1, stepping(store, first), False)
    holder = held(store, APPLY)
    stop(store, holder, made.id)
    with untouched():
        answer = store.batch_step((driver.job_id, driver.attempt), action_id, 1, 2, [], True)
        assert answer == Stepped(action_id=action_id, cursor=1, moved=1, done=True)
    fail(store, holder)
    assert states(store, made.id) == {"a": "failed", "b": "preview"}
    assert run(store, made.id).state == "failed"


def test_stopped_once(store: Store, untouched: Untouched) -> None:
    """B1: the first reason stands, and there is one driver."""
    made = previewed_run(store, ["a", "b"])
    act(store, made.id)
    drive(store)
    one, two = claim(store, tasks=[APPLY])
    stop(store, (one.job_id, one.attempt), made.id, "first")
    with untouched():
        row = store.batch_stop(
            (two.job_id, two.attempt), made.id, "second", new_job(store, id=77, task=STOP, run_id=made.id)
        )
        assert isinstance(row, BatchRunRow)
        assert row.critical == "first"


def test_only_by_the_holder_of_a_job_of_the_run(store: Store, untouched: Untouched) -> None:
    """G3"""
    made = applied_run(store, ["a"])
    act(store, made.id, "roll_back")
    (driver,) = claim(store, tasks=[DRIVE])
    with untouched():
        job = new_job(store, id=77, task=STOP, run_id=made.id)
        refused(store.batch_stop((driver.job_id, 9), made.id, "no", job), LeaseLost)
        refused(store.batch_stop((driver.job_id, driver.attempt), 404, "no", job), NotFound)
