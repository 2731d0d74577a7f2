"""The async twin: the same names, awaited, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from detent import Context, Detent
from detent.errors import InvalidInput, InvalidTransition, JobTimeout, KeyConflict, NotFound
from tests.app.shop import Shop


def test_two_hundred_at_once(shop: Shop) -> None:
    """Each its own job; keyed ones find each other."""

    async def crowd() -> tuple[list[Any], list[Any]]:
        plain = asyncio.gather(*(shop.app.aio.enqueue(shop.welcome.call(user_id=n)) for n in range(200)))
        keyed = asyncio.gather(*(shop.app.aio.enqueue(shop.welcome.call(user_id=0), key="k") for _ in range(50)))
        return list(await plain), list(await keyed)

    plain, keyed = asyncio.run(crowd())
    assert len(set(plain)) == 200
    assert len(set(keyed)) == 1
    assert len(shop.app.jobs.list(limit=1000)) == 201
    assert [shop.app.jobs.get(job.id).payload["user_id"] for job in plain] == list(range(200))


def test_the_same_names_awaited(shop: Shop) -> None:
    dead = shop.quarantined()

    async def story() -> None:
        aio = shop.app.aio
        job = await aio.enqueue(shop.welcome.call(user_id=7), tenant="acme", priority=3)
        assert ((await aio.jobs.get(job.id)).tenant, (await aio.jobs.get(str(job.id))).row.priority) == ("acme", 3)
        many = await aio.enqueue_many(shop.welcome.call(user_id=n) for n in range(3))
        assert await aio.enqueue_many([]) == []
        assert (await many[0].cancel(actor="ana")).state == "cancelled"
        again = await aio.jobs.get(dead.id)
        assert (await again.retry(actor="ana")).changed
        assert (await again.cancel(actor="ana")).state == "cancelled"
        await asyncio.to_thread(shop.work)
        assert (await job.wait(timeout=1)).result == "sent to 7"
        assert [line.message async for line in job.events()] == ["writing"]
        with pytest.raises(InvalidTransition):
            await job.discard(actor="ana")

    asyncio.run(story())


def test_refusals_are_raised(shop: Shop) -> None:
    async def refusals() -> None:
        aio = shop.app.aio
        await aio.enqueue(shop.welcome.call(user_id=7), key="k")
        with pytest.raises(KeyConflict):
            await aio.enqueue(shop.welcome.call(user_id=8), key="k")
        with pytest.raises(NotFound):
            await aio.jobs.get(4711)
        with pytest.raises(
            InvalidInput,
            match="key: found one key for many jobs: 'k'; allowed: no key; enqueue jobs with keys one by one",
        ):
            await aio.enqueue_many([shop.welcome.call(user_id=8)], key="k")
        with pytest.raises(InvalidInput, match="prio: found no option of enqueue; allowed: key, key_ttl, debounce"):
            await aio.enqueue(shop.welcome.call(user_id=8), prio=1)  # type: ignore[call-arg]

    asyncio.run(refusals())
    assert len(shop.app.jobs.list()) == 1


def test_waiting_holds_up_nobody_and_can_be_given_up(shop: Shop) -> None:
    """A cancelled coroutine leaves no thread behind that keeps the loop from closing."""

    async def story() -> None:
        job = await shop.app.aio.enqueue(shop.welcome.call(user_id=7))
        with pytest.raises(JobTimeout):
            await job.wait(timeout=5)
        waiting = asyncio.create_task(job.wait())
        following = asyncio.ensure_future(anext(job.events(follow=True)))
        await asyncio.sleep(0)
        tasks: list[asyncio.Future[Any]] = [waiting, following]
        for task in tasks:
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(story())


def test_a_cancelled_enqueue_stalls_nobody(shop: Shop) -> None:
    async def story() -> None:
        tasks = [asyncio.create_task(shop.app.aio.enqueue(shop.welcome.call(user_id=n))) for n in range(40)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in done[::2])
        assert len({one.id for one in done[1::2] if not isinstance(one, BaseException)}) == 20
        assert (await shop.app.aio.enqueue(shop.welcome.call(user_id=99))).created

    asyncio.run(story())


def test_the_block_opens_and_closes_the_database(sqlite_url: str) -> None:
    """`async with app.aio` is the lifespan of a web application; the next use opens the database again."""
    app = Detent(sqlite_url)

    async def serve() -> None:
        async with app.aio as aio:
            assert Path(sqlite_url.removeprefix("sqlite:///")).exists()
            assert await aio.jobs.list() == []
        assert not Path(f"{sqlite_url.removeprefix('sqlite:///')}-wal").exists()  # the last connection was closed
        assert await app.aio.jobs.list() == []
        await app.aio.close()

    asyncio.run(serve())


def test_one_application_serves_one_loop_after_another(shop: Shop) -> None:
    for number in range(3):
        assert asyncio.run(shop.app.aio.enqueue(shop.welcome.call(user_id=number))).created


def test_following_sees_what_is_still_to_come(shop: Shop) -> None:
    """E6"""
    app = shop.app
    shop.lease = 1e6  # whoever follows turns the clock, as fast as it can, while the job runs

    @app.task(name="steps")
    def steps(ctx: Context) -> None:
        for number in range(5):
            ctx.event(f"step {number}")

    async def story() -> list[str]:
        job = await app.aio.enqueue(steps.call())
        lines = job.events(follow=True)
        first = asyncio.ensure_future(anext(lines))
        await asyncio.to_thread(shop.work)
        return [(await first).message] + [line.message async for line in lines]

    assert asyncio.run(story()) == [f"step {number}" for number in range(5)]
