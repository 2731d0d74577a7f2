"""Work on other threads, awaited from an event loop: answers of writers, and blocks that must stay on one thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from sys import exc_info
from typing import Any, TypeVar

from detent.errors import WrongPlace
from detent.store.light_future import LightFuture

__all__ = ["KeptThread", "OnThread", "answer_of", "on_one_thread", "on_some_thread"]

T = TypeVar("T")

OnThread = Callable[..., Coroutine[Any, Any, Any]]
"""Runs a function on a certain thread without blocking the loop."""

IDLE_MAX = 32
"""Maximum number of idle threads that are kept. Starting a thread costs as much as several short transactions."""


async def answer_of(answer: LightFuture[T]) -> T:
    """Wait for an answer from another thread. Cancelling the wait cancels the request.

    Waking the loop costs a system call. A writer answers a hundred requests at once, and the loop is woken once for
    all of them.
    """
    loop = asyncio.get_running_loop()
    wakeups = _LOCAL.wakeups
    if wakeups is None or wakeups.loop is not loop:
        wakeups = _LOCAL.wakeups = _Wakeups(loop)
    waiter: asyncio.Future[None] = loop.create_future()
    answer.when_done(partial(wakeups.put, waiter))
    try:
        await waiter
    except asyncio.CancelledError:
        answer.cancel()
        raise
    return answer.result()


class _Wakeups:
    """The waiters of one loop whose answers are there, and whether the loop has been told to wake them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ready: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    def put(self, waiter: asyncio.Future[None]) -> None:
        """Wake a waiter, from any thread. A loop that is closed has no waiters left."""
        if self.loop.is_closed():
            return
        self._ready.append(waiter)
        if not self._is_scheduled:
            self._is_scheduled = True
            with suppress(RuntimeError):  # closed in the meantime
                self.loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        self._is_scheduled = False
        while self._ready:
            waiter = self._ready.popleft()
            if not waiter.done():
                waiter.set_result(None)


class _Local(threading.local):
    """A thread runs one loop at a time."""

    wakeups: _Wakeups | None = None


_LOCAL = _Local()


class KeptThread:
    """One thread that runs the functions it is given, in order.

    `take` a thread, and `end_with` the last function. Later calls are refused with `WrongPlace`, since the thread may
    have ended or may belong to another caller.
    """

    def __init__(self) -> None:
        self._is_taken = True
        self._queue: SimpleQueue[_Request | None] = SimpleQueue()
        threading.Thread(target=self._work, name="detent-block", daemon=True).start()

    @staticmethod
    def take() -> KeptThread:
        """Return an idle thread, or a new one."""
        try:
            thread = _idle.pop()
        except IndexError:
            return KeptThread()
        thread._is_taken = True
        return thread

    def begin(self, work: Callable[..., T], *args: Any) -> LightFuture[T]:
        """Run a function on the thread, in the context of the caller."""
        if not self._is_taken:
            raise WrongPlace("tx.execute", "after its block has ended", "write inside the block")
        request = _Request(copy_context(), work, args)
        self._queue.put(request)
        return request.answer

    async def do(self, work: Callable[..., T], *args: Any) -> T:
        """Run a function on the thread and await it. If the wait is cancelled before it has begun, it does not run."""
        return await answer_of(self.begin(work, *args))

    def end_with(self, work: Callable[..., T], *args: Any) -> LightFuture[T]:
        """Run the last function, even if the caller stops waiting for it, and then release the thread. Both are queued
        in one go, so the thread need not be woken again."""
        last = _Request(copy_context(), work, args)
        last.answer.begin()
        self._is_taken = False
        self._queue.put(last)
        self._queue.put(_Request(copy_context(), self._rest, ()))
        return last.answer

    def _rest(self) -> None:
        if len(_idle) < IDLE_MAX:
            _idle.append(self)
        else:
            self._queue.put(None)

    def _work(self) -> None:
        while (request := self._queue.get()) is not None:
            request.run()
            del request


class _Request:
    """A function to run, and the answer to the caller."""

    def __init__(self, context: Context, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.answer: LightFuture[Any] = LightFuture()
        self._context = context
        self._work = work
        self._args = args

    def run(self) -> None:
        if not self.answer.begin():
            return
        try:
            result = self._context.run(self._work, *self._args)
        except BaseException as error:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(result)


_idle: list[KeptThread] = []
os.register_at_fork(after_in_child=_idle.clear)


async def on_some_thread(work: Callable[..., T], *args: Any) -> T:
    """Run a function on a thread of the default pool."""
    return await asyncio.to_thread(work, *args)


@asynccontextmanager
async def on_one_thread(block: AbstractContextManager[T]) -> AsyncIterator[tuple[T, OnThread]]:
    """Enter, use and leave a block on one thread of its own. Yield the block's value, and what runs functions there.

    The block is always left, even after a cancel, and only when everything that was begun on the thread has ended.
    """
    thread, entered = KeptThread.take(), False

    def enter() -> T:
        nonlocal entered
        value = block.__enter__()
        entered = True
        return value

    def leave(*error: Any) -> None:
        if entered:
            block.__exit__(*error)

    try:
        yield await thread.do(enter), thread.do
    except BaseException:
        await asyncio.shield(answer_of(thread.end_with(leave, *exc_info())))
        raise
    else:
        await asyncio.shield(answer_of(thread.end_with(leave, None, None, None)))
