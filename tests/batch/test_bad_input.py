"""What people and the world do wrong to a run: a clear answer each, nothing applied twice, nothing forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from detent import BatchRun, Change, Context, Detent, Fatal, Limit, Retry, Snooze, Throttled
from detent.errors import InvalidInput, NotFound, PreviewNotReady, RunStuck
from detent.testing.harness import Harness
from detent.views.batch_progress import run_view
from tests.acceptance.shop import Shop, make_app


def reprice(detent: Harness, shop: Shop, **options: Any) -> tuple[Detent, Any]:
    app, rule = make_app(detent.url, shop, **{"retry": Retry(1), **options})
    return detent.use(app), rule


def works(detent: Harness, run: BatchRun) -> BatchRun:
    """Until it rests; leases of the dead and backoffs run out on the way."""
    for _ in range(30):
        detent.work()
        if run.refresh().rests:
            break
        detent.clock.advance(31)
    assert detent.app.record.verify() == []
    return run


def rule_of(app: Detent, refs: list[Any], name: str = "odd") -> Any:
    @app.batch(name=name, chunk=2)
    @dataclass
    class Odd:
        def targets(self) -> Iterator[Any]:
            yield from refs

        def preview(self, ref: str) -> Change[int]:
            return Change(before=1, after=2)

        def apply(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

    return Odd()


@pytest.mark.parametrize("refs", [["a", "b", "a"], ["a", "a"], ["a", "b", "c", "d", "b"]])
def test_the_same_target_twice_stops_the_plan_and_says_which(detent: Harness, refs: list[str]) -> None:
    """B2"""
    run = detent.app.runs.preview(rule_of(detent.app, refs))
    detent.work()
    with pytest.raises(RunStuck, match="twice"):
        run.wait(timeout=0, until={"previewed"})
    with pytest.raises(PreviewNotReady):
        run.apply(actor="ana")
    assert detent.app.record.verify() == []


@pytest.mark.parametrize(("times", "tries"), [(2, 3), (9, 3)])
def test_targets_that_raise_are_asked_for_as_often_as_the_batch_says(detent: Harness, times: int, tries: int) -> None:
    """B2: once it was the patience for dying workers, twenty tries over a quarter of an hour, with nothing to see."""
    calls: list[int] = []

    @detent.app.batch(name="shy", retry=Retry(2))
    @dataclass
    class Shy:
        def targets(self) -> Iterator[str]:
            calls.append(1)
            yield "a"
            if len(calls) <= times:
                raise RuntimeError("no list today")
            yield "b"

        def preview(self, ref: str) -> Change[int]:
            return Change(before=1, after=2)

        def apply(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

    run = detent.app.runs.preview(Shy())
    for _ in range(6):
        detent.work()
        detent.clock.advance(64)
    assert len(calls) == tries
    if times < tries:
        assert run.wait(timeout=0).total == 2
    else:
        with pytest.raises(RunStuck, match="raised RuntimeError: no list today"):
            run.wait(timeout=0)


@pytest.mark.parametrize("ref", [7, None, "", "a\0b", "x" * 600])
def test_what_is_no_ref_stops_the_plan(detent: Harness, ref: Any) -> None:
    run = detent.app.runs.preview(rule_of(detent.app, ["a", ref]))
    detent.work()
    with pytest.raises(RunStuck, match="an invalid ref"):
        run.wait(timeout=0)


def test_a_run_without_targets_is_previewed_and_cannot_be_applied(detent: Harness) -> None:
    run = detent.app.runs.preview(rule_of(detent.app, []))
    detent.work()
    assert run.wait(timeout=0).counts == {}
    with pytest.raises(InvalidInput):
        run.apply(actor="ana")


def test_a_run_that_somebody_stops_says_who_and_why_and_goes_back(detent: Harness) -> None:
    """B3, J14: wrong prices, seen half-way."""
    app, rule = reprice(detent, shop := Shop(5))
    before = dict(shop.prices)
    run = works(detent, app.runs.preview(rule()))
    shop.fails("ring-4", "ring-5", error=Snooze(600))
    run.apply(actor="ana")
    detent.work()
    app.jobs.where(task="reprice.apply").cancel(actor="ana", reason="wrong prices").wait()
    assert works(detent, run).counts == {"applied": 3, "failed": 2}
    (cause,) = run_view(app.store, run.id).causes
    assert (cause.targets, cause.error) == (2, "it was cancelled (cancel by ana: wrong prices)")
    run.roll_back(actor="ana")
    assert works(detent, run).state == "rolled_back"
    assert shop.prices == before


def test_a_run_that_ended_otherwise_is_not_waited_for(detent: Harness) -> None:
    """B3: `wait(until={"applied"})` of a run that ended as partial waited for ever."""
    app, rule = reprice(detent, shop := Shop(3))
    run = works(detent, app.runs.preview(rule()))
    with pytest.raises(TimeoutError):
        run.wait(timeout=0, until={"applied"})
    shop.fails("ring-3", error=Fatal("not for sale"))
    run.apply(actor="ana")
    detent.work()
    with pytest.raises(RunStuck, match="is stuck in partial: it has ended and will not become applied by itself"):
        run.wait(until={"applied"})
    assert run.wait(until={"applied", "partial"}).state == "partial"


def test_a_target_that_cannot_be_previewed_is_said_and_left_out_only_on_request(detent: Harness) -> None:
    """B2: the others are not held up by it."""
    shop = Shop(3)
    shop.prices["ring-unseen"] = 5
    shop.fails("ring-unseen")
    app, rule = reprice(detent, shop)
    run = works(detent, app.runs.preview(rule()))
    assert run.is_previewed
    assert run.row.preview_failed == 1
    (unseen,) = run.changes(only=["ring-unseen"])
    assert "nobody can look at it" in (unseen.error or "")
    (cause,) = run_view(app.store, run.id).causes
    assert (cause.targets, cause.example, "nobody can look at it" in cause.error) == (1, "ring-unseen", True)
    with pytest.raises(PreviewNotReady, match="1 of 4"):
        run.apply(actor="ana")
    run.apply(actor="ana", leave_failed=True)
    assert works(detent, run).counts == {"preview": 1, "applied": 3}
    assert run_view(app.store, run.id).causes == []


def test_a_preview_that_raises_is_tried_again_before_it_is_given_up(detent: Harness) -> None:
    """B2, B3"""
    calls: dict[str, int] = {}

    @detent.app.batch(name="flaky", retry=Retry(2))
    @dataclass
    class Flaky:
        def targets(self) -> list[str]:
            return ["good", "shy", "bad"]

        def preview(self, ref: str) -> Change[int]:
            calls[ref] = calls.get(ref, 0) + 1
            if ref == "bad" or (ref == "shy" and calls[ref] < 3):
                raise RuntimeError(f"{ref} does not answer")
            return Change(before=1, after=2)

        def apply(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

    run = works(detent, detent.app.runs.preview(Flaky()))
    assert (run.row.previewed, run.row.preview_failed) == (2, 1)
    assert calls == {"good": 1, "shy": 3, "bad": 3}


def test_an_effect_that_nobody_heard_the_end_of_is_looked_at_and_not_repeated(detent: Harness) -> None:
    """B4, B9: `idempotent=False` with `observe`."""
    shop = Shop(2)
    app, rule = reprice(detent, shop, idempotent=False)
    run = works(detent, app.runs.preview(rule()))
    run.apply(actor="ana")
    (step,) = [job for job in app.jobs.list(task="reprice.step") if job.state == "pending"]
    step_only(detent, step.id)
    for target in run.targets():
        assert target.apply_job_id is not None
        detent.crash(app.jobs.get(target.apply_job_id), at="returned" if target.ref == "ring-1" else "started")
    works(detent, run)
    assert (run.state, run.counts) == ("applied", {"applied": 2})
    assert shop.calls == {"ring-1": 1, "ring-2": 1}


def step_only(detent: Harness, job_id: int) -> None:
    """Let the step be carried out, and no target yet."""
    (claimed,) = detent.store.job_claim(
        lease_id=detent.store.ids_reserve(1), worker="test", queues=None, tasks=["reprice.step"], limit=1, lease=30
    )
    assert claimed.job_id == job_id
    detent.attempt(claimed)


def test_an_effect_that_cannot_be_told_is_a_dead_letter_for_a_person(detent: Harness) -> None:
    shop = Shop(1)
    app, rule = reprice(detent, shop, idempotent=False)
    run = works(detent, app.runs.preview(rule()))
    run.apply(actor="ana")
    (step,) = app.jobs.list(task="reprice.step")
    step_only(detent, step.id)
    (target,) = run.targets()
    assert target.apply_job_id is not None
    detent.crash(app.jobs.get(target.apply_job_id), at="started")
    detent.work()
    shop.set("ring-1", 55)
    works(detent, run)
    assert run.state == "failed"
    assert "neither the value before nor the value after" in (next(run.changes()).error or "")
    app.jobs.get(target.apply_job_id).settle(done=True, actor="ana", reason="the shop says so")
    assert (run.refresh().state, run.counts) == ("applied", {"applied": 1})
    assert app.record.verify() == []


def test_a_revert_that_fails_can_be_asked_for_again(detent: Harness) -> None:
    """B4"""
    shop = Shop(3)
    before = dict(shop.prices)
    app, rule = reprice(detent, shop)
    run = works(detent, app.runs.preview(rule()))
    run.apply(actor="ana")
    works(detent, run)
    shop.fails("ring-2")
    run.roll_back(actor="ana")
    works(detent, run)
    assert (run.state, run.counts) == ("applied", {"applied": 1, "rolled_back": 2})
    assert run.row.revert_failed == 1
    view = run_view(app.store, run.id)
    assert (view.doing, view.done, view.of, view.causes_of) == ("rollback failed", 2, 3, 1)
    assert [(one.targets, one.example) for one in view.causes] == [(1, "ring-2")]
    shop.heals()
    run.roll_back(actor="ana", reason="once more")
    works(detent, run)
    assert (run.state, run.counts) == ("rolled_back", {"rolled_back": 3})
    assert shop.prices == before
    assert shop.keys["ring-2"] == {
        f"{app.identities.current()}//run/{run.id}/ring-2/{did}" for did in ("apply", "revert")
    }


def test_a_batch_without_revert_or_observe_says_so(detent: Harness) -> None:
    run = detent.app.runs.preview(rule_of(detent.app, ["a"]))
    detent.work()
    run.apply(actor="ana")
    works(detent, run)
    with pytest.raises(InvalidInput, match="no revert"):
        run.roll_back(actor="ana")
    with pytest.raises(InvalidInput, match="no observe"):
        run.reconcile()
    detent.clock.advance(301)
    detent.work()
    assert detent.app.record.verify() == []


def test_a_fatal_error_is_not_tried_again(detent: Harness) -> None:
    """B3"""
    shop = Shop(2)
    app, rule = reprice(detent, shop)
    run = works(detent, app.runs.preview(rule()))
    shop.fails("ring-1", error=Fatal("it is not for sale"))
    run.apply(actor="ana")
    works(detent, run)
    assert shop.calls["ring-1"] == 1
    assert (run.state, run.counts) == ("partial", {"applied": 1, "failed": 1})


def test_a_plan_and_a_preview_that_died_go_on_where_they_were(detent: Harness) -> None:
    """B2: what is stored is passed over."""
    shop = Shop(7)
    app, rule = reprice(detent, shop, chunk=3)
    run = app.runs.preview(rule())
    (plan,) = app.jobs.list(task="reprice.plan")
    detent.crash(plan, at="returned")
    detent.work()
    for chunk in app.jobs.list(task="reprice.preview")[:2]:
        if chunk.state == "pending":
            detent.crash(chunk, at="returned")
    works(detent, run)
    assert (run.total, run.row.previewed) == (7, 7)
    assert [one.ref for one in run.changes()] == list(shop.prices)


@pytest.mark.parametrize(
    ("stored", "says"),
    [(["ring-4", "ring-9"], "as number 1"), ([f"ring-{n}" for n in range(1, 9)], "no longer returns 'ring-6'")],
)
def test_targets_that_come_otherwise_after_a_crash_stop_the_plan(detent: Harness, stored: list[str], says: str) -> None:
    """B2: two plans are not mixed."""
    app, rule = reprice(detent, Shop(5), chunk=2)
    run = app.runs.preview(rule())
    (claimed,) = detent.store.job_claim(
        lease_id=detent.store.ids_reserve(1), worker="test", queues=None, tasks=["reprice.plan"], limit=1, lease=30
    )
    detent.store.target_add((claimed.job_id, claimed.attempt), run.id, 1, stored, None, False)
    detent.clock.advance(31)
    detent.work()
    with pytest.raises(RunStuck, match=says):
        run.wait(timeout=0)
    assert app.record.verify() == []


def test_async_batches_work_as_plain_ones_do(detent: Harness) -> None:
    prices = {"a": 1, "b": 2, "c": 3}

    @detent.app.batch(name="later", chunk=2, idempotent=False)
    @dataclass
    class Later:
        async def targets(self) -> AsyncIterator[str]:
            for ref in list(prices):
                yield ref

        async def preview(self, ref: str) -> Change[int]:
            return Change(before=prices[ref], after=prices[ref] + 10)

        async def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
            prices[ref] = change.after

        async def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
            prices[ref] = change.before

        async def observe(self, ref: str) -> int:
            return prices[ref]

    app = detent.app
    run = works(detent, app.runs.preview(Later()))
    run.apply(actor="ana")
    assert works(detent, run).state == "applied"
    assert prices == {"a": 11, "b": 12, "c": 13}
    prices["b"] = 0
    look = run.reconcile()
    detent.work()
    assert [one.ref for one in look.wait().mismatches()] == ["b"]
    run.roll_back(actor="ana", overwrite=True)
    assert works(detent, run).state == "rolled_back"
    assert prices == {"a": 1, "b": 2, "c": 3}


def test_a_429_of_one_shop_keeps_nobody_else_back(detent: Harness) -> None:
    """B5, B9: a limit for each key that a function of batch and ref gives."""
    shop = Shop(3)
    app, rule = reprice(detent, shop, limit=Limit(rate=1000), limit_key=lambda value, ref: f"shop:{ref}")
    run = works(detent, app.runs.preview(rule()))
    shop.fails("ring-1", error=Throttled(retry_after=60))
    run.apply(actor="ana")
    detent.work()
    assert {one.ref: one.state for one in run.changes()} == {
        "ring-1": "queued",
        "ring-2": "applied",
        "ring-3": "applied",
    }
    shop.heals()
    detent.clock.advance(61)
    detent.work()
    assert run.refresh().state == "applied"


def test_an_application_on_another_database_does_not_take_its_runs_for_those_it_knows(
    detent: Harness, tmp_path: Path
) -> None:
    """What broke: the same number meant another run there, and the value of the first was used."""
    shop = Shop(1)
    app, rule = make_app(detent.url, shop)
    with closing(Harness(f"sqlite:///{tmp_path}/other.db")) as other:
        for harness, percent in ((detent, 10), (other, 50)):
            harness.use(app)
            run = works(harness, app.runs.preview(rule(percent=percent)))
            assert [one.after for one in run.changes()] == [100 - percent]


def test_what_is_not_there_is_not_found(detent: Harness) -> None:
    app = detent.app
    for kind in ("batch", "pipeline", None):
        with pytest.raises(NotFound):
            app.runs.get(4711, kind=kind)
    with pytest.raises(InvalidInput, match="a declared batch"):
        app.runs.preview(Shop())  # type: ignore[arg-type]
    run = app.runs.preview(rule_of(app, ["a"]))
    with pytest.raises(InvalidInput, match="until"):
        run.wait(until={"done"})
    with pytest.raises(TimeoutError, match="still preview"):
        run.wait(timeout=0)
    with pytest.raises(InvalidInput):
        app.runs.list(kind="batch", state="gone")
    assert [one.id for one in app.runs.list(kind="batch", name="odd")] == [run.id]
    assert app.runs.list(kind="batch", name="other") == []
