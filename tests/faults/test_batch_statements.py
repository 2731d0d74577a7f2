"""SIGKILL at every statement of the verbs that move many targets: whoever asks again moves each of them once."""

from __future__ import annotations

import pytest

from detent.model.batch_records import ActionPortion, BatchRunRow, Previewed, Stepped
from detent.store.contract import Store
from prove.trap import killed_at
from tests.contract.batches.sample_batch_runs import (
    DRIVE,
    PREVIEW,
    STOP,
    act,
    broken,
    drive,
    finish,
    held,
    planned,
    previewed_run,
    run,
    stepping,
    work,
)
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.faults.test_statements import die_everywhere


@pytest.mark.timeout(600)
def test_a_step_killed_anywhere_moves_each_target_once(store: Store, whole: bool) -> None:
    """B3, B4, B8, G7: the same step again, as whoever lost the answer sends it; every target has its one job."""

    def die(k: int, after: bool) -> bool:
        made = previewed_run(store, ["a", "b"])
        act(store, made.id)
        (driver,) = claim(store, tasks=[DRIVE])
        holder, action_id = (driver.job_id, driver.attempt), int(driver.payload[len('{"action":') : -1])
        portion = store.batch_portion(action_id, 10)
        assert isinstance(portion, ActionPortion)
        jobs = stepping(store, portion)
        died = killed_at(k, lambda: store.batch_step(holder, action_id, 0, portion.to_cursor, jobs, True), after=after)
        assert broken(store) == [], (k, after)
        again = store.batch_step(holder, action_id, 0, portion.to_cursor, jobs, True)
        assert again == Stepped(action_id=action_id, cursor=2, moved=2, done=True), (k, after)
        finish(store, holder)
        assert work(store) == 2, (k, after)
        assert (run(store, made.id).state, run(store, made.id).applied) == ("applied", 2), (k, after)
        return died

    die_everywhere(whole, die, 4)
    assert broken(store) == []


@pytest.mark.timeout(600)
def test_a_preview_killed_anywhere_is_counted_once(store: Store, whole: bool) -> None:
    """B2, B3: what was stored stays, what was not is stored by the next, and the run can be applied."""

    def die(k: int, after: bool) -> bool:
        made = planned(store, ["a", "b"])
        holder = held(store, PREVIEW)
        items = [Previewed(n=n, before="1", after="2") for n in (1, 2)]
        died = killed_at(k, lambda: store.target_previewed(holder, made.id, items), after=after)
        assert broken(store) == [], (k, after)
        row = store.target_previewed(holder, made.id, items)
        assert isinstance(row, BatchRunRow)
        assert (row.previewed, row.previewed_at is None) == (2, False), (k, after)
        finish(store, holder)
        act(store, made.id)
        drive(store)
        work(store)
        assert run(store, made.id).state == "applied", (k, after)
        return died

    die_everywhere(whole, die, 4)
    assert broken(store) == []


@pytest.mark.timeout(600)
def test_a_cancel_killed_anywhere_is_whole_or_not_there(store: Store, whole: bool) -> None:
    """B1, G7: the same cancel again; the run ends, with one job that cancels what waits."""

    def die(k: int, after: bool) -> bool:
        made = previewed_run(store, ["a", "b"])
        act(store, made.id)
        drive(store)
        driver = new_job(store, task=STOP, run_id=made.id)
        died = killed_at(k, lambda: store.batch_cancel(made.id, driver, "cy", "wrong"), after=after)
        assert broken(store) == [], (k, after)
        row = store.batch_cancel(made.id, driver, "cy", "wrong")
        assert isinstance(row, BatchRunRow)
        assert (row.state, row.cancel_requested_by) == ("queued", "cy"), (k, after)
        assert len(claim(store, tasks=[STOP])) == 1, (k, after)
        ids = [target.apply_job_id for target in store.target_list(made.id)]
        store.job_cancel([job_id for job_id in ids if job_id is not None], "cy", "wrong")
        assert run(store, made.id).state == "cancelled", (k, after)
        return died

    die_everywhere(whole, die, 4)
    assert broken(store) == []
