"""on_one_thread: a block on a thread of its own comes to its end, however the coroutine around it is left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from detent.client.aio_threads import on_one_thread
from tests.deadlines import scaled


class Traced:
    """A block that notes on which threads it is entered, used and left, and by what."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.left_by: list[str] = []
        self.entering = threading.Event()
        self.may_enter = threading.Event()
        self.may_enter.set()
        self.left = threading.Event()

    def note(self) -> None:
        self.threads.add(threading.get_ident())

    @contextmanager
    def block(self) -> Iterator[str]:
        self.entering.set()
        assert self.may_enter.wait(scaled(30))
        self.note()
        try:
            yield "open"
            self.left_by.append("its end")
        except BaseException as error:
            self.left_by.append(type(error).__name__)
            raise
        finally:
            self.note()
            self.left.set()


def test_one_thread_from_its_beginning_to_its_end() -> None:
    """C3: a connection that belongs to a thread is used on that thread alone, and never on the loop's."""
    traced = Traced()

    async def whole() -> None:
        async with on_one_thread(traced.block()) as (value, run):
            assert value == "open"
            await run(traced.note)

    asyncio.run(whole())
    assert traced.left_by == ["its end"]
    assert len(traced.threads) == 1
    assert threading.get_ident() not in traced.threads


def test_an_error_inside_leaves_it_by_that_error() -> None:
    traced = Traced()

    async def broken() -> None:
        async with on_one_thread(traced.block()):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(broken())
    assert traced.left_by == ["ZeroDivisionError"]


@pytest.mark.parametrize("waits_to_enter", [True, False])
def test_a_cancel_leaves_nothing_open(waits_to_enter: bool) -> None:
    """C3: also where the block's turn comes only after whoever waited for it is gone."""
    traced = Traced()
    if waits_to_enter:
        traced.may_enter.clear()

    async def cancelled() -> None:
        inside = asyncio.Event()

        async def waits() -> None:
            async with on_one_thread(traced.block()):
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(waits())
        if waits_to_enter:
            await asyncio.to_thread(traced.entering.wait, 30)
        else:
            await inside.wait()
        task.cancel()
        await asyncio.sleep(0)
        traced.may_enter.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert traced.left.wait(scaled(30))
    assert traced.left_by == ["CancelledError"]
