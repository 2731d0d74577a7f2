"""What the application does around jobs, awaited: lists, bulk actions, replacements, schedules, the record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from detent.client.aio_job import AsyncJob
from detent.errors import InvalidInput, NotFound
from tests.app.shop import Shop


def test_jobs_are_listed_page_by_page_and_acted_on(shop: Shop) -> None:
    jobs = [shop.welcome.enqueue(n) for n in range(3)]

    async def story() -> None:
        aio = shop.app.aio
        page = await aio.jobs.list(task=shop.welcome.name, limit=2)
        rest = await aio.jobs.list(task=shop.welcome.name, limit=2, after=page.next)
        assert ([job.id for job in (*page, *rest)], rest.next) == ([job.id for job in jobs[::-1]], None)
        chosen = aio.jobs.where(task=shop.welcome.name, state="pending")
        assert await chosen.count() == 3
        operation = await chosen.cancel(actor="ana", reason="enough")
        assert (await operation.wait(10)).changed == 3
        assert {job.state for job in await aio.jobs.list(task=shop.welcome.name)} == {"cancelled"}
        with pytest.raises(InvalidInput, match="state"):
            await aio.jobs.list(state="lost")

    asyncio.run(story())


def test_a_dead_job_is_replaced(shop: Shop) -> None:
    dead = shop.quarantined()

    async def story() -> AsyncJob[Any]:
        job = await shop.app.aio.jobs.get(dead.id)
        return await job.replace({"why": ""}, actor="ana", reason="a typo")

    new = asyncio.run(story())
    assert (new.payload, shop.app.jobs.get(dead.id).state) == ({"why": ""}, "cancelled")


def test_a_schedule_is_run_now_and_is_on_record(shop: Shop) -> None:
    shop.app.schedules.set("hourly", "0 * * * *", shop.welcome.call(user_id=7))

    async def story() -> None:
        aio = shop.app.aio
        job = await aio.schedules.run_now("hourly", actor="ana", reason="now")
        assert job.metadata["run_by"] == "ana"
        (line,) = await aio.record.search(actor="ana", entity="schedule", entity_id="hourly")
        assert (line.trigger, line.reason) == ("run_now", "now")
        with pytest.raises(NotFound):
            await aio.schedules.run_now("daily", actor="ana")

    asyncio.run(story())
