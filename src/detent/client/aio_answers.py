"""Answers from another thread to a loop, by the handful."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TypeVar

from detent.store.light_future import LightFuture

__all__ = ["answer_of"]

T = TypeVar("T")


async def answer_of(answer: LightFuture[T]) -> T:
    """What it is in the end; who gives up here cancels it. To wake the loop costs a system call: a writer answers a
    hundred at once, and the loop is woken once for them."""
    loop = asyncio.get_running_loop()
    box = _OF_THREAD.box
    if box is None or box.loop is not loop:
        box = _OF_THREAD.box = _Box(loop)
    waiter: asyncio.Future[None] = loop.create_future()
    answer.when_done(partial(box.put, waiter))
    try:
        await waiter
    except asyncio.CancelledError:
        answer.cancel()
        raise
    return answer.result()


class _Box:
    """Of one loop: who is to be told, and whether the loop knows that somebody is."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._told: deque[asyncio.Future[None]] = deque()
        self._is_rung = False

    def put(self, waiter: asyncio.Future[None]) -> None:
        """From any thread. A loop that has been closed has nobody left who waits."""
        if self.loop.is_closed():
            return
        self._told.append(waiter)
        if not self._is_rung:
            self._is_rung = True
            with suppress(RuntimeError):  # closed since we looked
                self.loop.call_soon_threadsafe(self._open)

    def _open(self) -> None:
        self._is_rung = False
        while self._told:
            waiter = self._told.popleft()
            if not waiter.done():
                waiter.set_result(None)


class _OfThread(threading.local):
    """A thread runs one loop at a time."""

    box: _Box | None = None


_OF_THREAD = _OfThread()
