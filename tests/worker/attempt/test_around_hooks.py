"""Hooks around every attempt (`@app.around`), for plain and async tasks, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from contextvars import ContextVar
from typing import Any

import pytest

from detent import Context, Fatal, Retry
from detent.errors import InvalidInput
from detent.testing.harness import Harness

customer: ContextVar[str] = ContextVar("customer", default="nobody")


@pytest.fixture
def detent(store_url: str) -> Iterator[Harness]:
    with closing(Harness(store_url)) as harness:
        yield harness


def tasks(detent: Harness, **options: Any) -> tuple[Any, Any]:
    """A plain task and an async one that return what they see."""

    @detent.app.task(name="plain", **options)
    def plain(ctx: Context, fails: bool = False) -> str:
        if fails:
            raise ValueError("as it must")
        return customer.get()

    @detent.app.task(name="in_a_loop", **options)
    async def in_a_loop(ctx: Context, fails: bool = False) -> str:
        if fails:
            raise ValueError("as it must")
        return customer.get()

    return plain, in_a_loop


def test_hooks_surround_each_attempt_in_the_order_of_their_declaration(detent: Harness) -> None:
    seen: list[str] = []

    @detent.app.around
    def outer(ctx: Context) -> Iterator[None]:
        token = customer.set(f"customer {ctx.metadata['customer']}")
        seen.append(f"{ctx.task} {ctx.attempt} begins")
        try:
            yield
        finally:
            seen.append(f"{ctx.task} {ctx.attempt} ends")
            customer.reset(token)

    @detent.app.around
    def inner(ctx: Context) -> AbstractContextManager[Any]:
        seen.append(customer.get())
        return nullcontext()

    plain, in_a_loop = tasks(detent)
    for task in (plain, in_a_loop):
        job = detent.app.enqueue(task.call(), metadata={"customer": 7})
        detent.work()
        assert job.refresh().result == "customer 7"
        assert seen == [f"{task.name} 1 begins", "customer 7", f"{task.name} 1 ends"]
        seen.clear()
    assert customer.get() == "nobody"


async def _noted(notes: list[str], text: str) -> None:
    notes.append(text)


def test_an_async_hook_is_for_async_tasks(detent: Harness) -> None:
    notes: list[str] = []

    @detent.app.around
    async def session(ctx: Context) -> AsyncIterator[None]:
        await _noted(notes, f"opened for {ctx.task}")
        customer.set("from the hook")
        yield
        await _noted(notes, "closed")

    plain, in_a_loop = tasks(detent)
    first, second = plain.enqueue(), in_a_loop.enqueue()
    detent.work()
    assert (first.refresh().result, second.refresh().result) == ("nobody", "from the hook")
    assert notes == ["opened for in_a_loop", "closed"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_hook_sees_the_error_and_cannot_swallow_it(detent: Harness, number: int) -> None:
    seen: list[BaseException] = []

    @detent.app.around
    def report(ctx: Context) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            seen.append(error)

    job = tasks(detent, retry=Retry(0))[number].enqueue(fails=True)
    detent.work()
    assert job.refresh().state == "quarantined"
    assert "ValueError: as it must" in job.row.error
    assert [str(error) for error in seen] == ["as it must"]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("place", ["before", "after", "no yield", "no context manager"])
def test_a_hook_that_fails_fails_the_attempt_by_name(detent: Harness, number: int, place: str) -> None:
    def broken(ctx: Context) -> Iterator[None]:
        if place == "before":
            raise RuntimeError("no session")
        if place == "no yield":
            return
        yield
        raise RuntimeError("no flush")

    def odd(ctx: Context) -> Any:
        return 7

    detent.app.around(odd if place == "no context manager" else broken)
    job = tasks(detent, retry=Retry(1))[number].enqueue()
    detent.work()
    assert job.refresh().state == "pending"
    (execution,) = job.executions()
    assert execution.outcome == "error"
    name = "odd" if place == "no context manager" else "broken"
    assert f"the hook {name} around task {job.row.task} failed" in (execution.error or "").replace("'", "")


def test_a_hook_may_say_how_the_attempt_ends(detent: Harness) -> None:
    @detent.app.around
    def refuse(ctx: Context) -> AbstractContextManager[None]:
        raise Fatal("the customer has left")

    plain, _ = tasks(detent)
    job = plain.enqueue()
    detent.work()
    assert (job.refresh().state, job.attempt) == ("quarantined", 1)


@pytest.mark.parametrize(("hook", "found"), [(7, "int"), (lambda: None, "no parameter"), (lambda a, b: None, "2")])
def test_what_cannot_be_a_hook_is_refused_where_it_is_declared(detent: Harness, hook: Any, found: str) -> None:
    with pytest.raises(InvalidInput, match=found):
        detent.app.around(hook)
