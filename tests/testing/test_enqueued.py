"""Jobs that run when they are enqueued, and assertions about what was enqueued (U1)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from detent import Context, Detent
from detent.errors import InvalidInput
from detent.testing.harness import Harness


@dataclass
class Address:
    city: str
    street: str = ""


@pytest.fixture
def app(detent: Harness) -> Detent:
    app = detent.app

    @app.task(name="greet")
    async def greet(ctx: Context, name: str) -> str:
        await asyncio.sleep(0)
        return f"hello {name}"

    @app.task(name="welcome", queue="mail")
    def welcome(ctx: Context, user_id: int, address: Address | None = None) -> list[int]:
        job = app.enqueue(greet.call(name=str(user_id)))
        return [job.id, job.refresh().attempt]

    return app


def test_jobs_run_when_they_are_enqueued(detent: Harness, app: Detent) -> None:
    """U1: and what a job enqueues runs after it, as with a worker."""
    welcome, greet = app.tasks["welcome"], app.tasks["greet"]
    detent.runs_inline = True
    job = app.enqueue(welcome.call(user_id=7))
    inner, attempt = job.refresh().result
    assert (attempt, app.jobs.get(inner).result) == (0, "hello 7")
    many = app.enqueue_many(greet.call(name=name) for name in "ab")
    assert [one.refresh().result for one in many] == ["hello a", "hello b"]
    later = app.enqueue(greet.call(name="c"), due_at=detent.clock.now() + timedelta(hours=1))
    assert later.refresh().state == "pending"
    detent.runs_inline = False
    assert app.enqueue(greet.call(name="d")).refresh().state == "pending"


def test_jobs_run_on_the_loop_of_the_test(detent: Harness, app: Detent) -> None:
    loops: list[Any] = []

    @app.task(name="look")
    async def look(ctx: Context) -> None:
        loops.append(asyncio.get_running_loop())

    async def scenario() -> None:
        job = await app.aio.enqueue(look.call())
        assert (await job.refresh()).state == "succeeded"
        assert loops == [asyncio.get_running_loop()]

    detent.runs_inline = True
    asyncio.run(scenario())


def test_what_was_enqueued_is_found(detent: Harness, app: Detent) -> None:
    welcome = app.tasks["welcome"]
    due = detent.clock.now() + timedelta(hours=1)
    first = app.enqueue(welcome.call(user_id=7, address=Address("Rome", "Via Appia")), key="w:7", tenant="acme")
    second = app.enqueue(welcome.call(user_id=7), due_at=due)
    assert detent.assert_enqueued(welcome, payload={"address": {"city": "Rome"}}) == first
    assert detent.assert_enqueued("welcome", key="w:7", queue="mail", tenant="acme") == first
    assert detent.assert_enqueued(welcome.call(user_id=7), due_at=due) == second
    assert detent.assert_enqueued(welcome, payload={"user_id": 7}, count=2) == second
    detent.refute_enqueued(welcome, payload={"user_id": 8})
    detent.refute_enqueued("greet")
    detent.work()
    detent.assert_enqueued(welcome, key="w:7", tenant="acme")


def test_messages_show_the_nearest_jobs(detent: Harness, app: Detent) -> None:
    welcome = app.tasks["welcome"]
    with pytest.raises(AssertionError) as nothing:
        detent.assert_enqueued(welcome)
    assert str(nothing.value) == "No job of welcome was enqueued. There is no job of this task; on record: no jobs."
    far = app.enqueue(welcome.call(user_id=8))
    near = app.enqueue(welcome.call(user_id=7, address=Address("Rome")))
    with pytest.raises(AssertionError) as refusal:
        detent.assert_enqueued(welcome, payload={"user_id": 7, "address": {"city": "Oslo"}})
    assert str(refusal.value).splitlines() == [
        "No job of welcome with payload {'user_id': 7, 'address': {'city': 'Oslo'}} was enqueued. "
        "Nearest of 2 jobs of this task:",
        f"  job {near.id} (pending): payload.address.city is 'Rome', expected 'Oslo'",
        f"  job {far.id} (pending): payload.user_id is 8, expected 7; "
        "payload.address is missing, expected {'city': 'Oslo'}",
    ]
    with pytest.raises(AssertionError, match=r"on record: welcome \(2\)"):
        detent.assert_enqueued("greet")
    with pytest.raises(AssertionError, match=f"Expected 3 jobs of welcome; found 2: job {near.id}, job {far.id}"):
        detent.assert_enqueued(welcome, count=3)
    with pytest.raises(AssertionError, match=f"Job {far.id} of welcome with payload .* was enqueued; it is pending"):
        detent.refute_enqueued(welcome, payload={"user_id": 8})
    with pytest.raises(InvalidInput, match="use refute_enqueued"):
        detent.assert_enqueued(welcome, count=0)


def test_many_jobs_are_read_page_by_page(detent: Harness, app: Detent) -> None:
    greet = app.tasks["greet"]
    first = app.enqueue(greet.call(name="first"))
    app.enqueue_many(greet.call(name=str(n)) for n in range(1100))
    assert detent.assert_enqueued(greet.call(name="first")) == first
