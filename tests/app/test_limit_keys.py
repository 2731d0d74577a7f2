"""The key of a limit as a function of the arguments."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from detent import Context, Detent, Limit, Throttled
from detent.errors import InvalidInput, InvalidSetting, NotFound
from detent.schedule.due_ticks import fire_due
from detent.testing.harness import Harness


def declare(app: Detent, limit_key: Any, **options: Any) -> Any:
    """A task with two arguments, one of which may be left out."""

    @app.task(name="price", limit=Limit(concurrency=1), limit_key=limit_key, **options)
    def price(ctx: Context, shop: int, sku: str = "ring") -> str:
        return f"{shop}/{sku}"

    return price


def of_shop(shop: int) -> str:
    return f"shop:{shop}"


def test_one_limit_for_each_key(detent: Harness) -> None:
    """J12, J13: a shop that is busy keeps its own jobs back, and `why` names it."""
    price = declare(detent.app, of_shop)
    held, waits, other = (price.enqueue(shop=shop) for shop in (7, 7, 8))
    assert (held.refresh().row.limit_key, other.refresh().row.limit_key) == ("shop:7", "shop:8")
    detent.crash(held)
    assert [job.id for job in detent.work()] == [held.id, other.id]
    assert waits.why() == "its limit 'shop:7' is full: 1 of 1 are running"
    detent.clock.advance(31)
    detent.work()
    assert detent.app.jobs.get(waits.id).result == "7/ring"


@pytest.mark.parametrize(
    ("function", "key"),
    [
        (lambda shop, sku: f"{shop}:{sku}", "7:ring"),
        (lambda **all_of_them: ",".join(sorted(all_of_them)), "shop,sku"),
        (lambda sku, shop="x", other="o": f"{sku}{shop}{other}", "ring7o"),
        (lambda: "all", "all"),
    ],
)
def test_it_asks_for_what_it_needs(detent: Harness, function: Any, key: str) -> None:
    assert declare(detent.app, function).enqueue(shop=7).refresh().row.limit_key == key


@pytest.mark.parametrize("value", [7, b"shop", None, "", "a\0b", "k" * 2000, ["shop"]])
def test_what_is_no_key_is_refused_and_nothing_is_written(detent: Harness, value: Any) -> None:
    price = declare(detent.app, lambda shop: value)
    with pytest.raises(InvalidInput, match="limit_key"):
        price.enqueue(shop=7)
    assert list(detent.app.jobs.list()) == []


def test_a_function_that_fails_refuses_the_job(detent: Harness) -> None:
    price = declare(detent.app, lambda shop: str(1 // (shop - 7)))
    with pytest.raises(InvalidInput, match="ZeroDivisionError") as refused:
        price.enqueue(shop=7)
    assert isinstance(refused.value.__cause__, ZeroDivisionError)
    assert price.enqueue(shop=8).refresh().row.limit_key == "1"


async def later(shop: int) -> str:
    return "shop"


@pytest.mark.parametrize("value", [7, b"shop", later, lambda user: user, lambda shop, /: shop, lambda *shop: ""])
def test_what_cannot_give_a_key_is_refused_at_once(detent: Harness, value: Any) -> None:
    with pytest.raises(InvalidSetting, match="limit_key"):
        declare(detent.app, value)


def test_a_key_is_paused_and_resumed_by_hand(detent: Harness) -> None:
    """J12, J13"""
    price = declare(detent.app, of_shop)
    waits, other = price.enqueue(shop=7), price.enqueue(shop=8)
    detent.app.put_declared(again=True)
    detent.app.limits.pause("shop:7", actor="ana", reason="their sale")
    assert [job.id for job in detent.work()] == [other.id]
    assert waits.why() == "its limit 'shop:7' is paused by ana: their sale"
    detent.app.limits.resume("shop:7", actor="ana")
    assert [job.id for job in detent.work()] == [waits.id]
    with pytest.raises(NotFound):
        detent.app.limits.pause("shop:9", actor="ana")


def test_the_other_side_says_no_for_one_key(detent: Harness) -> None:
    """B5"""

    @detent.app.task(name="ask", limit=Limit(concurrency=5), limit_key=of_shop)
    def ask(ctx: Context, shop: int) -> str:
        if shop == 7:
            raise Throttled(60)
        return "yes"

    ask.enqueue(shop=7)
    detent.work()
    waits, other = ask.enqueue(shop=7), ask.enqueue(shop=8)
    detent.work()
    assert detent.app.jobs.get(other.id).result == "yes"
    assert "its limit 'shop:7' is paused until" in waits.why()


def test_jobs_of_a_schedule_have_all_that_their_task_says(detent: Harness) -> None:
    """J11, J12, J3: key, priority and tenant; and no second one while an equal one waits."""
    price = declare(detent.app, of_shop, unique="pending", priority=4)
    detent.app.schedules.set("prices", "0 * * * *", price.call(shop=7), tenant="ana", catch_up="all")
    detent.clock.advance(timedelta(hours=2))
    (made,) = fire_due(detent.app.store, detent.app.ids)
    row = detent.app.jobs.get(made).row
    assert (row.limit_key, row.priority, row.tenant) == ("shop:7", 4, "ana")
    detent.clock.advance(timedelta(hours=1))
    assert fire_due(detent.app.store, detent.app.ids) == []
    assert price.enqueue(shop=7).id != made  # another tenant's
    assert detent.app.enqueue(price.call(shop=7), tenant="ana").id == made
    detent.work()
    detent.clock.advance(timedelta(hours=1))
    assert len(fire_due(detent.app.store, detent.app.ids)) == 1
