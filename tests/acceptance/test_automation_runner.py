"""The automation runner: a rule is previewed, applied, retried, reconciled and rolled back (B1 to B9).

Everything goes through the public doors, on both databases, with a clock that the story turns.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from detent import BatchRun, Limit, Retry, Throttled
from detent.alerts.evaluation import evaluate_policies as judge
from detent.errors import BatchChanged, InvalidInput, InvalidTransition, PreviewNotReady, RunBusy
from detent.model.batch_records import TargetRow
from detent.testing.harness import Harness
from tests.acceptance.shop import Shop, make_app
from tests.guards.prompt import Prompt

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


class Story:
    """A shop, its application, and the harness that works for it."""

    def __init__(self, detent: Harness, shop: Shop | None = None, **options: Any) -> None:
        self.detent = detent
        self.shop = shop or Shop()
        options.setdefault("retry", Retry(3, jitter=0.2))
        app, self.rule = make_app(detent.url, self.shop, **options)
        self.app = detent.use(app)

    def previewed(self, **fields: Any) -> BatchRun:
        run = self.app.runs.preview(self.rule(**fields), actor="ana")
        self.detent.work()
        return run.refresh()

    def works(self, run: BatchRun) -> BatchRun:
        """Until nothing is left to do, however long backoffs take."""
        for _ in range(20):
            self.detent.work()
            if run.refresh().rests:
                break
            self.detent.clock.advance(64)
        assert self.app.record.verify() == []
        return run

    def applied(self, **options: Any) -> BatchRun:
        run = self.previewed()
        run.apply(actor="ana", **options)
        return self.works(run)


@pytest.fixture
def story(detent: Harness) -> Story:
    return Story(detent)


def moves(run: BatchRun) -> list[tuple[str | None, str]]:
    return [(line.from_state, line.to_state) for line in run.history() if line.from_state not in (None, line.to_state)]


# -- the whole story -------------------------------------------------------------------------------------------


def test_preview_apply_partial_retry_applied_reconcile_roll_back(story: Story) -> None:
    """B1, B2, B4, B6: look first, then leap, and back."""
    app, shop = story.app, story.shop
    before = dict(shop.prices)
    run = app.runs.preview(story.rule(percent=10), actor="ana", reason="spring sale")
    with pytest.raises(PreviewNotReady):
        run.apply(actor="ana")
    story.detent.work()
    run.wait(timeout=0, until={"previewed"})
    assert shop.prices == before
    assert [(one.ref, one.before, one.after) for one in run.changes()] == [
        (ref, price, price * 9 // 10) for ref, price in before.items()
    ]

    shop.fails("ring-2", "ring-5")
    run.apply(actor="ana", reason="looks right")
    assert run.refresh().state == "queued"
    story.works(run)
    assert (run.state, run.counts) == ("partial", {"applied": 4, "failed": 2})

    shop.heals()
    run.retry_failed(actor="ben")
    story.works(run)
    assert (run.state, run.counts) == ("applied", {"applied": 6})
    assert shop.prices == {ref: price * 9 // 10 for ref, price in before.items()}

    shop.set("ring-3", 1)
    look = run.reconcile()
    story.detent.work()
    (found,) = look.wait().mismatches()
    assert (found.ref, found.expected, found.actual) == ("ring-3", 270, 1)
    assert run.refresh().row.mismatches == 1

    run.roll_back(actor="ana", reason="too cheap", overwrite=True)
    assert run.refresh().state == "applied"
    story.works(run)
    assert (run.state, run.counts) == ("rolled_back", {"rolled_back": 6})
    assert shop.prices == before
    assert moves(run) == [
        ("preview", "queued"),
        ("queued", "applying"),
        ("applying", "partial"),
        ("partial", "applying"),
        ("applying", "applied"),
        ("applied", "rolled_back"),
    ]
    said = {line.to_state: (line.actor, line.reason) for line in run.history()}
    assert said["queued"] == ("ana", "looks right")
    assert {actor for line in run.history() if line.to_state == "applying" for actor in [line.actor]} >= {"ben"}
    assert said["rolled_back"] == ("ana", "too cheap")


def test_a_run_of_which_nothing_could_be_applied_has_failed_and_can_be_tried_again(story: Story) -> None:
    """B1: applying → failed → applying → applied."""
    story.shop.fails(*story.shop.prices)
    run = story.applied()
    assert (run.state, run.counts) == ("failed", {"failed": 6})
    story.shop.heals()
    run.retry_failed(actor="ana")
    assert story.works(run).state == "applied"
    assert moves(run)[-3:] == [("applying", "failed"), ("failed", "applying"), ("applying", "applied")]


def test_a_partial_run_is_rolled_back_as_far_as_it_was_applied(story: Story) -> None:
    """B4: partial → rolled_back; what never was applied stays as it failed."""
    before = dict(story.shop.prices)
    story.shop.fails("ring-2")
    run = story.applied()
    assert run.state == "partial"
    run.roll_back(actor="ana")
    story.works(run)
    assert (run.state, run.counts) == ("rolled_back", {"rolled_back": 5, "failed": 1})
    assert story.shop.prices == before
    assert moves(run)[-1] == ("partial", "rolled_back")


def test_a_part_is_applied_and_the_rest_stays_in_preview(story: Story) -> None:
    """B2"""
    run = story.applied(only=["ring-1", "ring-4"])
    assert (run.state, run.counts) == ("applied", {"preview": 4, "applied": 2})
    assert story.shop.calls == {"ring-1": 1, "ring-4": 1}


def test_what_would_not_change_is_not_touched(detent: Harness) -> None:
    """B2"""
    shop = Shop()
    shop.prices["ring-0"] = 0
    story = Story(detent, shop)
    run = story.applied()
    assert (run.state, run.counts) == ("applied", {"preview": 1, "applied": 6})
    assert "ring-0" not in shop.calls
    assert [one.ref for one in run.changes(changed=False)] == ["ring-0"]


# -- what is forbidden -----------------------------------------------------------------------------------------


@pytest.fixture
def prompt(story: Story) -> Iterator[Prompt]:
    typed = Prompt(story.detent.url)
    yield typed
    typed.close()


def test_the_three_forbidden_moves_are_refused_by_the_database_too(story: Story, prompt: Prompt) -> None:
    """B1: applied → applying, rolled_back → applying, preview → applying."""
    forced = "UPDATE {batch_run} SET state = 'applying' WHERE id = %d"
    run = story.previewed()
    prompt.refuses(forced % run.id)
    run.apply(actor="ana")
    story.works(run)
    prompt.refuses(forced % run.id)
    with pytest.raises(InvalidTransition):
        run.retry_failed(actor="ana")
    with pytest.raises(InvalidTransition):
        run.apply(actor="ana")
    run.roll_back(actor="ana")
    story.works(run)
    prompt.refuses(forced % run.id)
    for again in (run.apply, run.retry_failed, run.roll_back):
        with pytest.raises(InvalidTransition):
            again(actor="ana")
    assert run.refresh().state == "rolled_back"


def test_a_target_goes_only_where_its_job_went(story: Story, prompt: Prompt) -> None:
    """B1: a bare UPDATE of a target is refused."""
    run = story.applied()
    for state in ("preview", "queued", "applying", "failed", "rolled_back"):
        prompt.refuses(f"UPDATE {{target}} SET state = '{state}' WHERE run_id = {run.id} AND n = 1")


def test_a_retry_and_a_rollback_do_not_meet(story: Story) -> None:
    """B4: rollback is refused while a retry is in flight, and a retry once a rollback was asked for."""
    story.shop.fails("ring-2")
    run = story.applied()
    run.retry_failed(actor="ana")
    with pytest.raises(RunBusy):
        run.roll_back(actor="ana")
    story.works(run)
    run.roll_back(actor="ana")
    with pytest.raises(RunBusy):
        run.retry_failed(actor="ana")
    with pytest.raises(RunBusy):
        run.roll_back(actor="ana")
    assert story.works(run).state == "rolled_back"


# -- tries and their times -------------------------------------------------------------------------------------


def test_a_target_is_tried_again_after_two_four_and_eight_seconds(story: Story) -> None:
    """B3: within a fifth, and then it is a dead letter."""
    story.shop.fails("ring-2")
    run = story.applied()
    (target,) = run.targets(state="failed")
    assert target.apply_job_id is not None
    assert target.attempts == 4
    tries = story.app.jobs.get(target.apply_job_id).executions()
    assert [one.outcome for one in tries] == ["error"] * 4
    waits = [
        (one.next_due_at - one.aborted_at).total_seconds()
        for one in tries[:3]
        if one.next_due_at is not None and one.aborted_at is not None
    ]
    assert [round(wait / wanted) for wait, wanted in zip(waits, (2, 4, 8), strict=True)] == [1, 1, 1]
    assert all(abs(wait - wanted) <= wanted / 5 for wait, wanted in zip(waits, (2, 4, 8), strict=True))
    assert story.app.jobs.get(target.apply_job_id).state == "quarantined"


def test_every_try_at_a_target_has_the_same_key_and_a_rollback_another(story: Story) -> None:
    """B7: the key names database, tenant, run, ref and action, never an attempt."""
    story.shop.fails("ring-2")
    run = story.applied()
    story.shop.heals()
    run.retry_failed(actor="ana")
    story.works(run)
    assert story.shop.calls["ring-2"] == 5
    key = f"{story.app.identities.current()}//run/{run.id}/ring-2"
    assert story.shop.keys["ring-2"] == {f"{key}/apply"}
    run.roll_back(actor="ana")
    story.works(run)
    assert story.shop.keys["ring-2"] == {f"{key}/apply", f"{key}/revert"}


def test_a_line_under_the_key_of_an_attempt_is_written_once_in_it(story: Story) -> None:
    """B7: run, target, action and attempt."""
    story.shop.fails("ring-2")
    run = story.applied()
    keys = [(ref, line.key) for ref, line in run.events(only=["ring-1", "ring-2"])]
    assert keys == [("ring-1", f"{run.id}:ring-1:apply:1")] + [
        ("ring-2", f"{run.id}:ring-2:apply:{attempt}") for attempt in (1, 2, 3, 4)
    ]


def test_a_single_dead_letter_that_is_retried_takes_its_run_along(story: Story) -> None:
    """B4: whoever retries the job by itself finds the run applying, and applied."""
    story.shop.fails("ring-2")
    run = story.applied()
    story.shop.heals()
    (target,) = run.targets(state="failed")
    assert target.apply_job_id is not None
    story.app.jobs.get(target.apply_job_id).retry(actor="ben")
    assert run.refresh().state == "applying"
    assert story.works(run).state == "applied"


def test_only_some_of_the_failed_are_tried_again(story: Story) -> None:
    """B4"""
    story.shop.fails("ring-2", "ring-3")
    run = story.applied()
    story.shop.heals()
    run.retry_failed(actor="ana", only=["ring-3"])
    story.works(run)
    assert (run.state, run.counts) == ("partial", {"applied": 5, "failed": 1})
    run.discard_failed(actor="ana", reason="sold out")
    assert (run.refresh().state, run.counts) == ("partial", {"applied": 5, "failed": 1})


def attempts_used(story: Story, target: TargetRow) -> int:
    assert target.apply_job_id is not None
    row = story.app.jobs.get(target.apply_job_id).row
    return row.attempt - row.spared


# -- 429 -------------------------------------------------------------------------------------------------------


def test_a_429_pauses_everybody_and_uses_up_no_attempt(detent: Harness) -> None:
    """B5, B9: Retry-After wins."""
    story = Story(detent, limit=Limit(rate=1000), limit_key="shop")
    run = story.previewed()
    story.shop.fails("ring-1", error=Throttled(retry_after=30))
    run.apply(actor="ana", only=["ring-1", "ring-2"])
    detent.work()
    first, second = run.targets(only=["ring-1", "ring-2"])
    assert (first.state, second.state) == ("queued", "queued")
    assert attempts_used(story, first) == 0
    assert story.shop.calls == {"ring-1": 1}
    detent.clock.advance(29)
    detent.work()
    assert story.shop.calls == {"ring-1": 1}
    story.shop.heals()
    detent.clock.advance(2)
    detent.work()
    assert run.refresh().state == "applied"


def test_without_retry_after_it_waits_16_32_and_64_seconds_and_then_the_breaker_opens(detent: Harness) -> None:
    """B5: more than five 429s in a row open the breaker for a minute; it is on record, and people hear of it."""
    story = Story(detent, limit=Limit(rate=1000), limit_key="shop")
    run = story.previewed()
    story.shop.fails("ring-1", error=Throttled())
    run.apply(actor="ana", only=["ring-1"])
    waits: list[float] = []
    for _ in range(5):
        detent.work()
        (limit,) = story.app.limits.list()
        assert limit.open_until is None
        assert limit.paused_until is not None
        waits.append((limit.paused_until - detent.clock.now()).total_seconds())
        detent.clock.advance(waits[-1] + 1)
    assert waits == [16, 32, 64, 64, 64]
    detent.work()
    (limit,) = story.app.limits.list()
    assert limit.open_until is not None
    assert limit.open_until - detent.clock.now() == timedelta(seconds=60)
    assert [line.to_state for line in story.app.store.transitions("limit", "shop")] == ["closed", "open"]
    judge(story.app.store)
    assert alerts(story, "breaker_open") == [("limit:shop", "firing")]
    story.shop.heals()
    detent.clock.advance(66)
    detent.work()
    assert run.refresh().state == "applied"
    (target,) = run.targets(only=["ring-1"])
    assert attempts_used(story, target) == 1


# -- reconciliation --------------------------------------------------------------------------------------------


def test_the_world_is_looked_at_after_five_minutes_an_hour_and_daily_for_thirty_days(story: Story) -> None:
    """B6"""
    run = story.applied()
    finished_at = run.row.finished_at
    assert finished_at is not None
    looks: list[float] = []
    while (due := run.refresh().row.reconcile_at) is not None:
        looks.append((due - finished_at).total_seconds())
        story.detent.clock.set(due)
        story.detent.work()
    assert looks == [5 * MINUTE, HOUR, *(day * DAY for day in range(1, 31))]
    assert all(one.checked == 6 and one.done_at is not None for one in run.reconciliations())


def test_a_drift_is_reported_once_and_resolved_when_it_is_right_again(story: Story) -> None:
    """B6: as a line of the look, on the run, and among its mismatches."""
    run = story.applied()
    story.shop.set("ring-3", 1)
    story.detent.clock.advance(5 * MINUTE)
    story.detent.work()
    assert [one.ref for one in run.mismatches()] == ["ring-3"]
    assert alerts(story, "mismatches_found") == [(f"run:{run.id}", "firing")]
    look = run.reconciliations()[0]
    (line,) = story.app.jobs.get(look.job_id).events()
    assert (line.level, json.loads(line.payload or "{}")["actual"]) == ("warning", 1)
    story.shop.set("ring-3", 270)
    story.detent.clock.advance(HOUR)
    story.detent.work()
    assert run.mismatches() == []
    assert [one.ref for one in run.mismatches(open_only=False)] == ["ring-3"]
    assert alerts(story, "mismatches_found") == [(f"run:{run.id}", "resolved")]
    assert run.refresh().row.mismatches == 0


def test_what_drifted_is_put_right_by_a_run_of_its_own(story: Story) -> None:
    """B6: looked at first, like everything."""
    run = story.applied()
    story.shop.set("ring-3", 1)
    look = run.reconcile()
    story.detent.work()
    assert len(look.wait().mismatches()) == 1
    mend = run.correct(actor="ana")
    story.detent.work()
    assert [(one.ref, one.before, one.after) for one in mend.wait(0).changes()] == [("ring-3", 1, 270)]
    mend.apply(actor="ana")
    assert story.works(mend).state == "applied"
    again = run.reconcile()
    story.detent.work()
    assert again.wait().mismatches() == []
    with pytest.raises(InvalidInput, match="without open mismatches"):
        run.correct(actor="ana")


# -- tolerance, reading, bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(("tolerate", "fine"), [(1, True), (0.2, True), (0, False), (0.1, False), (None, False)])
def test_few_enough_failures_are_tolerated(detent: Harness, tolerate: float | None, fine: bool) -> None:
    """B9: the run still ends partial."""
    story = Story(detent, tolerate=tolerate)
    story.shop.fails("ring-2")
    run = story.applied()
    assert (run.state, run.tolerated) == ("partial", fine)
    assert alerts(story, "run_partial") == ([] if fine else [(f"run:{run.id}", "firing")])
    detent.work()
    assert [one.raised for one in story.app.alerts.list() if one.policy == "run_partial"] == ([] if fine else [1])


def test_whoever_was_told_that_a_run_failed_is_told_that_it_did_well_after_all(story: Story) -> None:
    """B9, M2"""
    story.shop.fails(*story.shop.prices)
    run = story.applied()
    assert alerts(story, "run_failed") == [(f"run:{run.id}", "firing")]
    story.shop.heals()
    run.retry_failed(actor="ana")
    story.works(run)
    assert alerts(story, "run_failed") == [(f"run:{run.id}", "resolved")]


def alerts(story: Story, policy: str) -> list[tuple[str, str]]:
    return [(one.scope, one.state) for one in story.app.store.alert_list() if one.policy == policy]


def test_the_difference_can_be_exported(story: Story) -> None:
    """B2"""
    run = story.previewed()
    table, text = io.StringIO(), io.StringIO()
    assert run.export(table) == run.export(text, "json") == 6
    rows = list(csv.DictReader(io.StringIO(table.getvalue())))
    assert [(row["ref"], row["before"], row["after"]) for row in rows][:1] == [("ring-1", "100", "90")]
    assert [row["ref"] for row in json.loads(text.getvalue())] == list(story.shop.prices)
    with pytest.raises(InvalidInput, match="csv, json"):
        run.export(table, "xlsx")


def test_a_run_previewed_under_other_code_is_not_applied_without_a_word(detent: Harness) -> None:
    run = Story(detent, version="1").previewed()
    newer = Story(detent, version="2")
    run = newer.app.runs.get(run.id, kind="batch")
    with pytest.raises(BatchChanged, match="preview it again"):
        run.apply(actor="ana")
    run.apply(actor="ana", accept_changed=True)
    assert newer.works(run).state == "applied"


@pytest.mark.parametrize("only", [["ring-1", "ring-99"], [], "ring-1", [7]])
def test_what_cannot_be_chosen_is_refused_and_nothing_is_moved(story: Story, only: Any) -> None:
    run = story.previewed()
    with pytest.raises(InvalidInput):
        run.apply(actor="ana", only=only)
    assert (run.refresh().state, run.counts) == ("preview", {"preview": 6})
