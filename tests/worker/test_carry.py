"""One task carries coroutines that are not its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context

import pytest

from detent.worker.carry import carry

WORD: ContextVar[str] = ContextVar("word", default="nothing")


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    return lambda: asyncio.run(test())


async def speak(word: str, waits: float | None = None) -> str:
    before = WORD.get()
    WORD.set(word)
    if waits is not None:
        await asyncio.sleep(waits)
    return f"{before}, {WORD.get()}"


@in_a_loop
async def test_each_has_context_variables_of_its_own() -> None:
    assert await carry(speak("one"), copy_context(), os.getpid()) == "nothing, one"
    assert await carry(speak("two", waits=0), copy_context(), os.getpid()) == "nothing, two"
    assert WORD.get() == "nothing"


@in_a_loop
async def test_waiting_is_told_once_and_only_where_it_waits() -> None:
    told: list[str] = []
    await carry(speak("one"), copy_context(), os.getpid(), lambda: told.append("one"))
    await carry(speak("two", waits=0.001), copy_context(), os.getpid(), lambda: told.append("two"))
    assert told == ["two"]


@in_a_loop
async def test_errors_come_through_from_either_side() -> None:
    async def break_down() -> None:
        await asyncio.sleep(0)
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        await carry(break_down(), copy_context(), os.getpid())


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

    waits = asyncio.Event()

    async def carrier() -> str:
        found: str = await carry(listen(), copy_context(), os.getpid(), waits.set)
        return found

    task = asyncio.create_task(carrier())
    await waits.wait()
    task.cancel()
    assert await task == "in order"
    assert seen == ["asked to stop"]
