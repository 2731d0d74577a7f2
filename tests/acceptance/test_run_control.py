"""Batch runs that are stopped, applied in parts, and kept from overwriting what others have changed."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from detent import BatchRun, Critical, Retry
from detent.errors import InvalidTransition, RunBusy, RunStuck
from detent.model.records import Finish
from detent.testing.harness import Harness
from detent.views.batch_progress import run_view
from tests.acceptance.shop import Shop, make_app
from tests.acceptance.test_automation_runner import Story, moves

LOGIN = "the shop refuses our password"


@pytest.fixture
def story(detent: Harness) -> Story:
    return Story(detent)


def states(run: BatchRun) -> list[tuple[str, str]]:
    return [(target.ref, target.state) for target in run.targets()]


# -- a critical error ------------------------------------------------------------------------------------------


def test_a_critical_error_stops_the_run(detent: Harness) -> None:
    """B1: applying → failed on a critical error; every target was called with the wrong password before."""
    story = Story(detent, Shop(rings=50))
    story.shop.fails(*story.shop.prices, error=Critical(LOGIN))
    run = story.applied()
    assert story.shop.calls.total() == 1
    assert (run.state, run.counts, run.error) == ("failed", {"failed": 50}, LOGIN)
    assert {one.error for one in run.changes() if not one.attempts} == {f"Not begun: {LOGIN}"}
    (line,) = [line for line in run.history() if line.to_state == "failed"]
    assert (line.trigger, line.reason) == ("fail", LOGIN)

    story.shop.heals()
    run.retry_failed(actor="ana", reason="the password is right now")
    story.works(run)
    assert (run.state, run.counts, run.error) == ("applied", {"applied": 50}, None)
    assert {line.ref for line in run.changes(state="applied")} == set(story.shop.prices)


def test_a_run_that_was_stopped_has_failed_though_targets_were_applied(story: Story) -> None:
    """B1: and what was applied can be rolled back."""
    before = dict(story.shop.prices)
    story.shop.fails("ring-3", error=Critical(LOGIN))
    run = story.applied()
    assert (run.state, run.counts) == ("failed", {"applied": 2, "failed": 4})
    assert story.shop.calls == {"ring-1": 1, "ring-2": 1, "ring-3": 1}
    run.roll_back(actor="ana")
    story.works(run)
    assert (run.state, run.counts) == ("rolled_back", {"rolled_back": 2, "failed": 4})
    assert story.shop.prices == before
    assert moves(run)[-2:] == [("failed", "partial"), ("partial", "rolled_back")]


def test_a_retry_of_one_target_of_a_stopped_run(story: Story) -> None:
    """B4: by its job, as of any dead letter: the run goes on, and its old reason is gone."""
    story.shop.fails("ring-1", error=Critical(LOGIN))
    run = story.applied()
    (first,) = run.targets(only=["ring-1"])
    story.shop.heals()
    assert first.apply_job_id is not None
    story.app.jobs.get(first.apply_job_id).retry(actor="ana")
    story.works(run)
    assert (run.state, run.counts, run.error) == ("partial", {"applied": 1, "failed": 5}, None)


def test_targets_that_are_not_handed_out_yet_stay_in_preview(detent: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """B2, B3: the action that hands them out ends with the run; another apply takes them."""
    monkeypatch.setattr("detent.batch.applier._PORTION", 2)
    story = Story(detent)
    run = story.previewed()
    story.shop.fails("ring-1", error=Critical(LOGIN))
    run.apply(actor="ana")
    step = one_step(detent)  # two targets are handed out, and the driver is lost
    detent.work()
    story.shop.heals()
    assert (run.refresh().state, run.counts) == ("failed", {"preview": 4, "failed": 2})
    detent.clock.advance(60)
    detent.work()
    assert story.app.jobs.get(step).state == "succeeded"
    assert run.refresh().counts == {"preview": 4, "failed": 2}
    run.apply(actor="ana")
    story.works(run)
    assert (run.state, run.counts) == ("partial", {"applied": 4, "failed": 2})
    run.retry_failed(actor="ana")
    assert story.works(run).counts == {"applied": 6}


def one_step(detent: Harness) -> int:
    """Hand out the first portion of the action that waits, and die."""
    store = detent.store
    (claimed,) = store.job_claim(
        lease_id=store.ids_reserve(1), worker="dies", queues=None, tasks=["reprice.step"], limit=1, lease=30.0
    )
    real, calls = store.batch_step, 0

    def dies(*args: object) -> object:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise KeyboardInterrupt
        return real(*args)  # type: ignore[arg-type]

    store.batch_step = dies  # type: ignore[method-assign, assignment]
    task = detent.app.find_task("reprice.step")
    holder: Any = SimpleNamespace(job_id=claimed.job_id, attempt=claimed.attempt)
    try:
        with pytest.raises(KeyboardInterrupt):
            task.function(holder, **task.decode(claimed.payload))
    finally:
        store.batch_step = real  # type: ignore[method-assign]
    return claimed.job_id


def test_a_critical_error_in_a_rollback_stops_the_rollback(story: Story) -> None:
    """B4: what was not reverted stays applied, and is reverted when it is asked for again."""
    before = dict(story.shop.prices)
    run = story.applied()
    story.shop.calls.clear()
    story.shop.fails(*story.shop.prices, error=Critical(LOGIN))
    run.roll_back(actor="ana")
    story.works(run)
    assert (run.state, run.counts, run.error) == ("applied", {"applied": 6}, LOGIN)
    assert story.shop.calls.total() == 1
    story.shop.heals()
    run.roll_back(actor="ana")
    story.works(run)
    assert (run.state, run.error, story.shop.prices) == ("rolled_back", None, before)


def test_a_run_is_cancelled_before_it_applies(story: Story) -> None:
    """B1: while it is planned, when it is previewed, and when it is queued: at once, and nothing is applied. A worker
    then finds nothing to do."""
    app, before = story.app, dict(story.shop.prices)
    previewed, queued = story.previewed(), story.previewed()
    queued.apply(actor="ana")
    unplanned = app.runs.preview(story.rule(), actor="ana")
    for run in (unplanned, previewed, queued):
        was = run.refresh().state
        run.cancel(actor="ben", reason="wrong prices")
        assert (run.state, run.error) == ("cancelled", "cancelled by ben: wrong prices")
        assert run.history()[-1].actor == "ben"
        assert moves(run)[-1] == (was, "cancelled")
        assert run.wait(timeout=0).cancel(actor="cy").row.cancel_requested_by == "ben"
    for run in (unplanned, previewed, queued):
        story.works(run)
        assert (run.state, story.shop.prices) == ("cancelled", before)
    assert app.dead.list() == []
    with pytest.raises(InvalidTransition):
        unplanned.apply(actor="ana")


def test_a_run_that_applies_is_cancelled(detent: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """B1, B3: targets that wait are cancelled by the caller, one that runs finishes, and what was not handed out stays
    in preview."""
    monkeypatch.setattr("detent.batch.applier._PORTION", 4)
    story = Story(detent)
    before = dict(story.shop.prices)
    run = story.previewed()
    run.apply(actor="ana")
    one_step(detent)
    store = detent.store
    (running,) = store.job_claim(
        lease_id=store.ids_reserve(1), worker="slow", queues=None, tasks=["reprice.apply"], limit=1, lease=600.0
    )
    run.cancel(actor="ben", reason="wrong prices")
    assert (run.state, run.counts) == ("applying", {"preview": 2, "applying": 1, "failed": 3})
    detent.clock.advance(60)
    detent.work()
    assert run.refresh().state == "applying"
    store.job_finish([Finish(running.job_id, running.attempt)], "slow")
    story.works(run)
    assert (run.state, run.counts) == ("cancelled", {"preview": 2, "applied": 1, "failed": 3})
    assert [(one.to_state, one.actor, one.reason) for one in run.history()][-1] == ("cancelled", "ben", "wrong prices")
    assert detent.store.alert_list("firing") == []
    assert story.shop.prices == before  # the harness did not call the shop for the target that another worker held
    with pytest.raises(InvalidTransition):
        story.applied().cancel(actor="ana")


def test_cancelling_the_job_of_an_action_says_what_is_stuck(story: Story) -> None:
    """B3: the run waits for that job; its progress and its wait say so, and it can be cancelled."""
    run = story.previewed()
    run.apply(actor="ana")
    (step,) = story.app.jobs.list(run=run.id, task="reprice.step")
    step.cancel(actor="ana")
    assert run_view(story.detent.store, run.id).doing == "stuck"
    with pytest.raises(RunStuck, match=rf"job {step.id} \(reprice.step\) was cancelled.*cancel the run"):
        run.wait(timeout=0)
    assert run.cancel(actor="ana").state == "cancelled"
    assert run_view(story.detent.store, run.id).doing == "cancelled"
    run.apply(actor="ana")
    assert story.works(run).state == "applied"


def test_a_critical_error_in_the_preview_stops_the_preview(detent: Harness) -> None:
    """B2: not an error of each target."""
    shop = Shop(rings=50)
    asked = 0

    class Closed(dict[str, int]):
        def __getitem__(self, ref: str) -> int:
            nonlocal asked
            asked += 1
            raise Critical(LOGIN)

    shop.prices = Closed(shop.prices)
    story = Story(detent, shop)
    run = story.app.runs.preview(story.rule(), actor="ana")
    detent.work()
    assert (asked, run.refresh().row.stuck) == (1, 1)
    assert LOGIN in (run.error or "")


# -- a few first, then the rest --------------------------------------------------------------------------------


def test_a_few_first_and_then_the_rest(story: Story) -> None:
    """B2: after `only`, nothing else of the run could ever be applied."""
    run = story.applied(only=["ring-1"])
    assert (run.state, run.counts) == ("applied", {"preview": 5, "applied": 1})
    run.apply(actor="ben", reason="looks right", only=["ring-2", "ring-3"])
    assert run.refresh().state == "queued"
    story.works(run)
    assert (run.state, run.counts) == ("applied", {"preview": 3, "applied": 3})
    run.apply(actor="ben")
    story.works(run)
    assert (run.state, run.counts) == ("applied", {"applied": 6})
    assert story.shop.calls == dict.fromkeys(story.shop.prices, 1)
    assert moves(run)[2:6] == [
        ("applying", "applied"),
        ("applied", "queued"),
        ("queued", "applying"),
        ("applying", "applied"),
    ]
    with pytest.raises(InvalidTransition, match="cannot go from applied to queued; allowed from applied: rolled_back"):
        run.apply(actor="ana")


def test_the_rest_of_a_run_that_failed_in_part(story: Story) -> None:
    """B2, B4: the failed ones are for a retry, the others for another apply."""
    story.shop.fails("ring-1")
    run = story.applied(only=["ring-1", "ring-2"])
    assert (run.state, run.counts) == ("partial", {"preview": 4, "applied": 1, "failed": 1})
    run.apply(actor="ana")
    with pytest.raises(RunBusy):
        run.retry_failed(actor="ana")
    story.works(run)
    assert (run.state, run.counts) == ("partial", {"applied": 5, "failed": 1})


def test_nothing_is_left_where_the_rest_would_not_change(detent: Harness) -> None:
    """B2: and a rollback leaves nothing to apply either."""
    shop = Shop()
    shop.prices["ring-0"] = 0
    story = Story(detent, shop)
    run = story.applied(only=["ring-0"])
    run.apply(actor="ana")
    story.works(run)
    assert run.counts == {"applied": 7}
    other = story.applied(only=["ring-1"])
    other.roll_back(actor="ana")
    with pytest.raises(RunBusy):
        other.apply(actor="ana")
    story.works(other)
    with pytest.raises(InvalidTransition):
        other.apply(actor="ana")
    third = story.previewed()
    third.apply(actor="ana")
    story.works(third)
    assert third.counts == {"preview": 1, "applied": 6}
    with pytest.raises(InvalidTransition):
        third.apply(actor="ana")


# -- what others have changed ----------------------------------------------------------------------------------


def test_a_stale_preview_does_not_overwrite_what_others_have_changed(story: Story) -> None:
    """B2: what was read is what is changed, or nothing."""
    run = story.previewed()
    story.shop.set("ring-2", 999)
    run.apply(actor="ana")
    story.works(run)
    assert (run.state, run.counts, run.conflicts) == ("partial", {"applied": 5, "failed": 1}, 1)
    assert (story.shop.prices["ring-2"], story.shop.calls["ring-2"]) == (999, 0)
    (refused,) = run.changes(state="failed")
    assert (refused.ref, refused.conflict, refused.found, refused.attempts) == ("ring-2", True, 999, 1)
    assert refused.error is not None
    assert "Target 'ring-2' was not changed: its value is 999, expected 200. Preview a new run" in refused.error

    run.retry_failed(actor="ana")
    assert story.works(run).conflicts == 1
    run.retry_failed(actor="ana", overwrite=True)
    story.works(run)
    assert (run.state, run.conflicts, story.shop.prices["ring-2"]) == ("applied", 0, 180)


def test_an_apply_that_may_overwrite(story: Story) -> None:
    run = story.previewed()
    story.shop.set("ring-2", 999)
    run.apply(actor="ana", overwrite=True)
    assert (story.works(run).state, story.shop.prices["ring-2"]) == ("applied", 180)


def test_a_change_that_an_earlier_attempt_has_made_is_no_conflict(story: Story) -> None:
    """B7: the shop did it and answered with an error."""
    shop = story.shop

    def does_and_fails() -> None:
        shop.set("ring-2", 180)
        raise RuntimeError("the answer was lost")

    shop.trouble["ring-2"] = does_and_fails
    run = story.previewed()
    run.apply(actor="ana")
    story.detent.work()
    shop.heals()
    assert (story.works(run).state, run.conflicts) == ("applied", 0)


def test_rolling_back_an_older_run_leaves_a_newer_one_alone(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    """B4: it undid the newer run without a word."""
    older = story.applied()
    story.detent.clock.advance(60)
    newer = story.applied(only=["ring-2", "ring-5"])
    assert older.newer_runs() == {newer.id: ["ring-2", "ring-5"]}
    with caplog.at_level(logging.WARNING, "detent.batch"):
        older.roll_back(actor="ana")
    assert f"run {newer.id} has changed some of its targets since: ring-2, ring-5" in caplog.text
    story.works(older)
    assert (older.state, older.counts, older.conflicts) == ("applied", {"applied": 2, "rolled_back": 4}, 2)
    assert story.shop.prices == {
        "ring-1": 100,
        "ring-2": 162,
        "ring-3": 300,
        "ring-4": 400,
        "ring-5": 405,
        "ring-6": 600,
    }
    older.roll_back(actor="ana", overwrite=True)
    story.works(older)
    assert (older.state, older.conflicts, story.shop.prices["ring-5"]) == ("rolled_back", 0, 500)
    assert newer.newer_runs() == {}


def test_a_batch_that_cannot_observe_is_not_asked(detent: Harness) -> None:
    shop = Shop()
    app, rule = make_app(detent.url, shop, retry=Retry(0))
    del rule.observe
    detent.use(app)
    run = app.runs.preview(rule(), actor="ana")
    detent.work()
    shop.set("ring-2", 999)
    run.apply(actor="ana")
    detent.work()
    assert (run.refresh().state, shop.prices["ring-2"]) == ("applied", 180)
