"""What jobs cost their limit, as a user declares it, and what `ctx.spend` and `why` say of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from detent import Change, Context, Detent, Limit
from detent.errors import InvalidArguments, InvalidInput, InvalidSetting, RunStuck, WrongPlace
from detent.model.ids import ReservedIds
from detent.schedule.due_ticks import fire_due
from detent.testing.harness import Harness

BUDGET = Limit(rate=1, burst=10)


def declare(app: Detent, **options: Any) -> Any:
    """A task that asks the shop for some things, and says what that has cost where it is told."""

    @app.task(name="ask", **{"limit": BUDGET, "limit_key": "shop", **options})
    def ask(ctx: Context, skus: list[str], spent: float | None = None, commits: bool = False) -> None:
        if commits:
            with ctx.commit():
                ctx.spend(spent or 0)
        elif spent is not None:
            ctx.spend(spent)

    return ask


def tokens(app: Detent) -> float:
    return next(limit.tokens for limit in app.limits.list() if limit.key == "shop")


def test_a_number_is_what_each_job_takes(detent: Harness) -> None:
    """B5, J13: `why` says what a job waits for."""
    ask = declare(detent.app, cost=4)
    jobs = [ask.enqueue(skus=[]) for _ in range(3)]
    assert len(detent.work()) == 2
    assert jobs[2].why() == "its limit 'shop' has 2 of the 4 tokens that it costs"
    detent.clock.advance(2)
    assert len(detent.work()) == 1


def test_a_function_says_it_of_the_arguments(detent: Harness) -> None:
    ask = declare(detent.app, cost=lambda skus: 1 + len(skus))
    one, two, none = ask.enqueue(skus=["a"]), ask.enqueue(skus=["a", "b", "c"]), ask.enqueue(skus=[])
    assert [job.refresh().row.cost for job in (one, two, none)] == [2, 4, None]
    many = detent.app.enqueue_many(ask.call(skus=["a"] * n) for n in (1, 2))
    assert [job.refresh().row.cost for job in many] == [2, 3]
    detent.work()
    assert tokens(detent.app) == 1


def test_a_function_of_an_argument_left_out_sees_its_default(detent: Harness) -> None:
    ask = declare(detent.app, cost=lambda skus, spent: 5 if spent is None else 2)
    assert (ask.enqueue(skus=[]).refresh().row.cost, ask.enqueue(skus=[], spent=1).refresh().row.cost) == (5, 2)


@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize(("spent", "left"), [(1.5, 8.5), (0, 10), (12, -2)])
def test_what_it_has_cost_in_the_end(detent: Harness, spent: float, left: float, commits: bool) -> None:
    """B5: the budget is put right by the answer, also from within a commit block."""
    declare(detent.app, cost=4).enqueue(skus=[], spent=spent, commits=commits)
    (job,) = detent.work()
    assert (job.state, tokens(detent.app)) == ("succeeded", left)


def test_a_schedule_keeps_the_cost_of_its_call(detent: Harness) -> None:
    ask = declare(detent.app, cost=lambda skus: 3 * len(skus))
    row = detent.app.schedules.set("often", "* * * * *", ask.call(skus=["a", "b"]))
    assert row.cost == 6
    detent.clock.advance(60)
    (fired,) = fire_due(detent.store, ReservedIds(detent.store.ids_reserve, 1))
    assert detent.app.jobs.get(fired).row.cost == 6


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"cost": 11}, "11, but the bucket holds 10"),
        ({"cost": 0}, "0"),
        ({"cost": 2.5}, "2.5"),
        ({"cost": True}, "True"),
        ({"cost": "4"}, "'4'"),
        ({"cost": 4, "limit": None, "limit_key": None}, "4 without a rate"),
        ({"cost": 4, "limit": Limit(concurrency=2)}, "4 without a rate"),
        ({"cost": lambda sku: 1}, "the parameter 'sku'"),
        ({"cost": 3, "limit": Limit(rate=20)}, "3, but the bucket holds 2"),
        ({"cost": lambda skus: 1, "limit": Limit(rate=20)}, "a function, and a limit without burst"),
    ],
)
def test_a_cost_that_cannot_be_is_refused_where_it_is_declared(
    detent: Harness, options: dict[str, Any], found: str
) -> None:
    with pytest.raises(InvalidSetting, match=found) as raised:
        declare(detent.app, **options)
    assert "cost" in str(raised.value)


@pytest.mark.parametrize(
    ("cost", "found"),
    [
        (lambda skus: 11, "returned 11, but the bucket holds 10"),
        (lambda skus: 0, "returned 0"),
        (lambda skus: None, "returned None"),
        (lambda skus: skus[0], "raised IndexError"),
    ],
)
def test_a_function_that_gives_no_cost_refuses_the_job(detent: Harness, cost: Any, found: str) -> None:
    """And nothing is half done: none of many is there."""
    ask = declare(detent.app, cost=cost)
    with pytest.raises(InvalidInput, match=found):
        detent.app.enqueue_many([ask.call(skus=[])])
    assert list(detent.app.jobs.list()) == []


@pytest.mark.parametrize("spent", [-1, float("nan"), float("inf"), 10**10])
def test_what_no_call_can_cost_is_refused(detent: Harness, spent: float) -> None:
    @detent.app.task(name="odd", limit=BUDGET, limit_key="shop")
    def odd(ctx: Context) -> str:
        with pytest.raises(InvalidInput, match="cost"):
            ctx.spend(spent)
        return "refused"

    odd.enqueue()
    assert [job.result for job in detent.work()] == ["refused"]
    assert tokens(detent.app) == 9


def test_there_must_be_something_to_spend(detent: Harness) -> None:
    @detent.app.task(name="free")
    def free(ctx: Context) -> str:
        with pytest.raises(WrongPlace, match="has no rate"):
            ctx.spend(3)
        return "refused"

    free.enqueue()
    assert [job.result for job in detent.work()] == ["refused"]


def batch(app: Detent, cost: Any, refs: tuple[str, ...] = ("a", "bb", "ccc")) -> Any:
    @app.batch(name="reprice", limit=BUDGET, limit_key="shop", cost=cost)
    @dataclass
    class Reprice:
        step: int = 1

        def targets(self) -> Iterator[str]:
            yield from refs

        def preview(self, ref: str) -> Change[int]:
            return Change(before=1, after=1 + self.step)

        def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
            ctx.spend(1)

        def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
            pass

    return Reprice()


@pytest.mark.parametrize(("cost", "costs"), [(3, [3, 3, 3]), (lambda batch, ref: 2 * len(ref) * batch.step, [2, 4, 6])])
def test_a_target_costs_what_its_batch_says(detent: Harness, cost: Any, costs: list[int]) -> None:
    """B5: applying and reverting cost; plan and preview are one token each."""
    run = detent.app.runs.preview(batch(detent.app, cost))
    detent.work()
    assert tokens(detent.app) == 8
    run.apply(actor="ana")
    for _ in range(3):
        detent.work()
    assert run.refresh().state == "applied"
    assert [job.refresh().row.cost for job in reversed(detent.app.jobs.list(task="reprice.apply"))] == costs
    assert tokens(detent.app) == 5
    run.roll_back(actor="ana")
    for _ in range(20):
        detent.work()
        detent.clock.advance(1)
    assert [job.refresh().row.cost for job in reversed(detent.app.jobs.list(task="reprice.revert"))] == costs
    assert run.refresh().state == "rolled_back"


def test_a_batch_that_costs_more_than_there_is_is_refused(detent: Harness) -> None:
    with pytest.raises(InvalidSetting, match="11, but the bucket holds 10"):
        batch(detent.app, 11)


def test_a_target_that_costs_more_than_there_is_leaves_the_run_as_it_was(detent: Harness) -> None:
    """The job that hands targets out says why, and no target is half done."""
    run = detent.app.runs.preview(batch(detent.app, lambda batch, ref: 11 if ref == "ccc" else 1))
    detent.work()
    run.apply(actor="ana")
    detent.work()
    assert list(detent.app.jobs.list(task="reprice.apply")) == []
    with pytest.raises(RunStuck, match=r"target 'ccc': .* returned 11, but the bucket holds 10"):
        run.wait(timeout=0)
    assert detent.app.record.verify() == []


def test_an_argument_that_does_not_fit_is_still_said_first(detent: Harness) -> None:
    ask = declare(detent.app, cost=lambda skus: len(skus))
    with pytest.raises(InvalidArguments):
        ask.call(skus=7)
