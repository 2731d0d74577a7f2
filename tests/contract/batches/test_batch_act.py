"""batch_act: what is asked of a run, and when it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from detent.errors import IdConflict, InvalidInput, InvalidTransition, NotFound, PreviewNotReady, RunBusy
from detent.model.batch_records import NewAction
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import (
    APPLY,
    DRIVE,
    REVERT,
    act,
    applied_run,
    drive,
    held,
    planned,
    previewed_run,
    run,
    states,
    work,
)
from tests.contract.jobs.sample_jobs import abort, claim, enqueue, new_job
from tests.contract.refusals import Untouched, refused


def test_apply_queues_the_run(store: Store, clock: StoreClock) -> None:
    """B1, B2: in one small transaction, whatever the number of its targets; on record with who and why."""
    made = previewed_run(store)
    row = act(store, made.id, reason="sale", metadata='{"ip":"x"}')
    assert (row.state, row.outstanding, row.queued, row.queued_at) == ("queued", 1, 0, clock.now())
    line = store.transitions("batch_run", str(made.id))[-1]
    assert (line.from_state, line.to_state, line.actor, line.reason) == ("preview", "queued", "ben", "sale")
    assert line.metadata == '{"ip":"x"}'
    assert len(claim(store, tasks=[DRIVE])) == 1


def test_the_same_action_again_is_the_same(store: Store, untouched: Untouched) -> None:
    made = previewed_run(store)
    item = NewAction(id=store.ids_reserve(1), run_id=made.id, action="apply", actor="ben")
    driver = new_job(store, task=DRIVE, run_id=made.id)
    store.batch_act(item, driver)
    with untouched():
        assert store.batch_act(item, driver) == run(store, made.id)
        refused(act(store, made.id, "roll_back", id=item.id), IdConflict)
        refused(act(store, made.id + 999), NotFound)


def test_not_before_the_preview_is_complete(store: Store, untouched: Untouched) -> None:
    """B2: nobody has read it yet."""
    made = planned(store, ["a", "b"])
    with untouched():
        refused(act(store, made.id), PreviewNotReady, run_id=made.id, previewed=0, total=2, complete=False)


def test_what_could_not_be_previewed_is_left_out_only_on_request(store: Store) -> None:
    """B2: nothing is silently forgotten."""
    made = previewed_run(store, ["a", "b"], bad=["b"])
    refused(act(store, made.id), PreviewNotReady, failed=1, complete=True)
    refused(act(store, made.id, refs=("b",)), InvalidInput, field="refs")
    assert act(store, made.id, leave_failed=True).state == "queued"
    drive(store)
    work(store)
    assert run(store, made.id).state == "applied"
    assert states(store, made.id) == {"a": "applied", "b": "preview"}


def test_what_would_not_change_is_left_out(store: Store, untouched: Untouched) -> None:
    made = previewed_run(store, ["a", "b"], same=["a", "b"])
    with untouched():
        refused(act(store, made.id), InvalidInput, field="targets")
    act(store, made.id, unchanged=True)
    assert drive(store).moved == 2


def test_some_targets_by_name(store: Store) -> None:
    """B2: the others stay in preview, and the run is applied when those are."""
    made = previewed_run(store, ["a", "b", "c"], same=["c"])
    act(store, made.id, refs=("c", "a", "a"))
    assert drive(store).moved == 2
    work(store)
    assert run(store, made.id).state == "applied"
    assert states(store, made.id) == {"a": "applied", "b": "preview", "c": "applied"}


def test_names_that_are_none(store: Store, untouched: Untouched) -> None:
    made = previewed_run(store)
    with untouched():
        wrong = refused(act(store, made.id, refs=("a", *(f"x{n}" for n in range(9)))), InvalidInput, field="refs")
        assert "x0" in wrong.found
        assert "and 4 more" in wrong.found
        refused(act(store, made.id, refs=()), InvalidInput, field="refs")
        refused(act(store, made.id, refs=tuple(map(str, range(100_001)))), InvalidInput, field="refs")


def test_a_run_is_applied_once(store: Store, untouched: Untouched) -> None:
    """B1: applied twice, retried with nothing to retry, or applied after it was: a clear answer."""
    made = previewed_run(store)
    act(store, made.id)
    with untouched():
        refused(act(store, made.id), InvalidTransition, from_state="queued", to_state="queued")
        refused(act(store, made.id, "retry_failed"), RunBusy)
        refused(act(store, made.id, "roll_back"), RunBusy)
    drive(store)
    work(store)
    with untouched():
        refused(act(store, made.id), InvalidTransition, from_state="applied")
        refused(act(store, made.id, "retry_failed"), InvalidTransition, from_state="applied", to_state="applying")


def test_failed_targets_again(store: Store) -> None:
    """B4: all or some; by the same job, so what was committed once is never done twice."""
    made = applied_run(store, ["a", "b", "c"], fails=["a", "b"])
    before = {target.ref: target.apply_job_id for target in store.target_list(made.id)}
    assert made.state == "partial"
    refused(act(store, made.id, "retry_failed", refs=("c",)), InvalidInput, field="refs")
    assert act(store, made.id, "retry_failed", refs=("b",)).state == "applying"
    assert drive(store).moved == 1
    assert states(store, made.id) == {"a": "failed", "b": "queued", "c": "applied"}
    work(store)
    assert run(store, made.id).state == "partial"
    act(store, made.id, "retry_failed")
    drive(store)
    work(store)
    assert run(store, made.id).state == "applied"
    assert {target.ref: target.apply_job_id for target in store.target_list(made.id)} == before


def test_a_failed_run_again(store: Store) -> None:
    made = applied_run(store, ["a"], fails=["a"])
    assert (made.state, made.reconcile_at) == ("failed", None)
    refused(act(store, made.id, "roll_back"), InvalidTransition, from_state="failed", to_state="rolled_back")
    act(store, made.id, "retry_failed")
    drive(store)
    work(store)
    assert run(store, made.id).state == "applied"


@pytest.mark.parametrize("fails", [(), ("b",)])
def test_a_rollback_leaves_the_run_where_it_is_until_it_is_done(store: Store, fails: Any, untouched: Untouched) -> None:
    """B4: applied or partial until the last target is reverted; nothing is retried meanwhile, nor asked twice."""
    made = applied_run(store, fails=fails)
    row = act(store, made.id, "roll_back", reason="wrong rule")
    assert (row.state, row.outstanding, row.rollback_requested_by) == (made.state, 1, "ben")
    assert row.reconcile_at is None
    with untouched():
        refused(act(store, made.id, "roll_back"), RunBusy)
    drive(store)
    with untouched():
        refused(act(store, made.id, "roll_back"), RunBusy)
        if fails:
            refused(act(store, made.id, "retry_failed"), RunBusy)
            (dead,) = (target.apply_job_id for target in store.target_list(made.id, state="failed"))
            assert dead is not None
            refused(store.job_retry([dead], "ana")[0], RunBusy, run_id=made.id)
        refused(act(store, made.id, "roll_back", refs=("a",)), InvalidInput)
    work(store, REVERT)
    row = run(store, made.id)
    assert (row.state, row.applied, row.reverting) == ("rolled_back", 0, 0)
    assert row.rolled_back_at is not None
    with untouched():
        refused(act(store, made.id, "roll_back"), InvalidTransition, from_state="rolled_back")
        refused(act(store, made.id), InvalidTransition, from_state="rolled_back")
        refused(act(store, made.id, "retry_failed"), InvalidTransition, from_state="rolled_back", to_state="applying")


def test_reverts_that_gave_up_are_tried_again(store: Store) -> None:
    """B4: resumable; the run stays where it is until the last one is reverted."""
    made = applied_run(store)
    act(store, made.id, "roll_back")
    drive(store)
    work(store, REVERT, fails=["b"])
    row = run(store, made.id)
    assert (row.state, row.revert_failed, row.rolled_back) == ("applied", 1, 2)
    assert store.target_list(made.id, refs=["b"])[0].error == "boom"
    act(store, made.id, "roll_back")
    assert drive(store).moved == 1
    work(store, REVERT)
    assert run(store, made.id).state == "rolled_back"


def test_a_retry_in_flight_is_not_rolled_back(store: Store, untouched: Untouched) -> None:
    """B4: rollback refuses while a target is on its way."""
    made = applied_run(store, fails=["a"])
    act(store, made.id, "retry_failed")
    with untouched():
        refused(act(store, made.id, "roll_back"), RunBusy)
    drive(store)
    (busy,) = claim(store, tasks=[APPLY])
    with untouched():
        refused(act(store, made.id, "roll_back"), RunBusy)
    abort(store, busy, fatal=True)
    assert act(store, made.id, "roll_back").rollback_requested_at is not None


def test_a_refused_driver_refuses_the_action(store: Store, untouched: Untouched) -> None:
    made = previewed_run(store)
    taken = new_job(store, id=enqueue(store), payload="{}")
    item = NewAction(id=store.ids_reserve(1), run_id=made.id, action="apply", actor="ben")
    with untouched():
        refused(store.batch_act(item, taken), IdConflict)
    assert held(store, "mail.send")[0] == taken.id
