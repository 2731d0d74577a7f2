"""One task carries coroutines that are not its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import pytest

from detent.model import fork_count
from detent.worker.attempt.coroutine_driver import SuspendedCoroutine, resume_coroutine, start_coroutine

T = TypeVar("T")
WORD: ContextVar[str] = ContextVar("word", default="nothing")


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    return lambda: asyncio.run(test())


async def carry(coroutine: Coroutine[Any, Any, T]) -> T:
    found: T | SuspendedCoroutine = start_coroutine(coroutine, copy_context(), fork_count.count)
    return await resume_coroutine(found) if isinstance(found, SuspendedCoroutine) else found


async def speak(word: str, waits: float | None = None) -> str:
    before = WORD.get()
    WORD.set(word)
    if waits is not None:
        await asyncio.sleep(waits)
    return f"{before}, {WORD.get()}"


@in_a_loop
async def test_each_has_context_variables_of_its_own() -> None:
    assert await carry(speak("one")) == "nothing, one"
    assert await carry(speak("two", waits=0)) == "nothing, two"
    assert WORD.get() == "nothing"


@in_a_loop
async def test_one_that_does_not_wait_has_ended_when_it_has_set_out() -> None:
    assert start_coroutine(speak("one"), copy_context(), fork_count.count) == "nothing, one"
    waits = start_coroutine(speak("two", waits=0.001), copy_context(), fork_count.count)
    assert isinstance(waits, SuspendedCoroutine)
    assert await resume_coroutine(waits) == "nothing, two"


@in_a_loop
async def test_errors_come_through_from_either_side() -> None:
    async def break_down() -> None:
        await asyncio.sleep(0)
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        await carry(break_down())


@in_a_loop
async def test_a_cancel_reaches_the_coroutine_that_waits() -> None:
    seen: list[str] = []

    async def listen() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("asked to stop")
        await asyncio.sleep(0)
        return "in order"

    task = asyncio.create_task(carry(listen()))
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "in order"
    assert seen == ["asked to stop"]
