"""What the application does around jobs, awaited: lists, bulk actions, replacements, schedules, the record."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from detent import Detent
from detent.client.aio import AioClient
from detent.client.aio_jobs import AioJobs
from detent.client.operation import Jobs
from detent.client.search import JobsFilter
from detent.errors import InvalidInput, NotFound
from tests.app.shop import Shop


def test_jobs_are_listed_page_by_page_and_acted_on(shop: Shop) -> None:
    jobs = [shop.welcome.enqueue(n) for n in range(3)]

    async def story() -> None:
        aio = shop.app.aio
        page = await aio.jobs(task=shop.welcome.name, limit=2)
        rest = await aio.jobs(task=shop.welcome.name, limit=2, after=page.next)
        assert ([*page, *rest], rest.next) == (jobs[::-1], None)
        chosen = await aio.jobs(task=shop.welcome.name, state="pending")
        assert (chosen.next, await chosen.count()) == (None, 3)
        operation = await chosen.cancel(actor="ana", reason="enough")
        await asyncio.to_thread(operation.wait, 10)
        assert {job.state for job in await aio.jobs(task=shop.welcome.name)} == {"cancelled"}
        with pytest.raises(InvalidInput, match="cut off by limit"):
            await page.cancel(actor="ana")
        with pytest.raises(InvalidInput, match="state"):
            await aio.jobs(state="lost")

    asyncio.run(story())


def test_a_dead_job_is_replaced(shop: Shop) -> None:
    dead = shop.quarantined()
    new = asyncio.run(shop.app.aio.replace(dead.id, {"why": ""}, actor="ana", reason="a typo"))
    assert (new.payload, shop.app.get(dead.id).state) == ({"why": ""}, "cancelled")


def test_a_schedule_is_run_now_and_is_on_record(shop: Shop) -> None:
    shop.app.set_schedule("hourly", "0 * * * *", shop.welcome.call(user_id=7))

    async def story() -> None:
        aio = shop.app.aio
        job = await aio.run_schedule("hourly", actor="ana", reason="now")
        assert job.metadata["run_by"] == "ana"
        (line,) = await aio.search_record(actor="ana", entity="schedule", entity_id="hourly")
        assert (line.trigger, line.reason) == ("run_now", "now")
        with pytest.raises(NotFound):
            await aio.run_schedule("daily", actor="ana")

    asyncio.run(story())


@pytest.mark.parametrize("name", ["replace", "run_schedule", "search_record"])
def test_the_same_arguments(name: str) -> None:
    plain, awaited = (inspect.signature(getattr(owner, name)).parameters for owner in (Detent, AioClient))
    assert [(one.name, one.kind, one.default, one.annotation) for one in plain.values()] == [
        (one.name, one.kind, one.default, one.annotation) for one in awaited.values()
    ]


def test_the_same_filters_and_actions() -> None:
    filters = inspect.signature(Detent.jobs).parameters
    assert JobsFilter.__annotations__.keys() == filters.keys() - {"self"}
    for name in ("count", "retry", "cancel", "discard", "move"):
        plain, awaited = (inspect.signature(getattr(owner, name)).parameters for owner in (Jobs, AioJobs))
        assert list(plain) == list(awaited)
