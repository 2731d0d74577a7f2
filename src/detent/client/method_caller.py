"""Calling the user's methods of a batch or a pipeline, which may be sync or async.

The code around these methods is written once, as coroutines. Around sync methods the coroutines never wait, so they run
to their end at once, on the worker's thread. Around async methods they are awaited on the worker's event loop, and the
database is queried on a thread.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from detent.client.aio_threads import on_some_thread

__all__ = ["AsyncCaller", "Caller", "SyncCaller", "as_task", "caller_for", "is_async"]

R = TypeVar("R")


class SyncCaller:
    """Calls everything on the current thread."""

    async def query(self, function: Callable[..., R], *args: Any) -> R:
        """Run a function of Detent's that uses the database."""
        return function(*args)

    async def call(self, method: Callable[..., Any], *args: Any) -> Any:
        """Call a method of the user."""
        return method(*args)

    async def each(self, method: Callable[[], Any]) -> AsyncIterator[Any]:
        """Yield the items that a method of the user returns or yields."""
        for item in method():
            yield item


class AsyncCaller(SyncCaller):
    """Never blocks the event loop: queries and sync methods run on a thread."""

    async def query(self, function: Callable[..., R], *args: Any) -> R:
        return await on_some_thread(function, *args)

    async def call(self, method: Callable[..., Any], *args: Any) -> Any:
        if not is_async(method):
            return await on_some_thread(method, *args)
        found = method(*args)
        return await found if inspect.iscoroutine(found) else found

    async def each(self, method: Callable[[], Any]) -> AsyncIterator[Any]:
        found = method()
        if inspect.iscoroutine(found):
            for item in await found:
                yield item
            return
        async for item in found:
            yield item


Caller = SyncCaller | AsyncCaller


def is_async(method: Callable[..., Any] | None) -> bool:
    """Whether a method is a coroutine function or an async generator."""
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def caller_for(*methods: Callable[..., Any] | None) -> Caller:
    """Return the caller for methods that are called together: async if any of them is."""
    return AsyncCaller() if any(is_async(method) for method in methods) else SyncCaller()


def as_task(work: Callable[..., Coroutine[Any, Any, R]], caller: Caller) -> Callable[..., Any]:
    """Return `work` as a function to declare as a task, sync or async like its caller, with the same parameters."""
    if isinstance(caller, AsyncCaller):

        @wraps(work)
        async def awaited(*args: Any, **arguments: Any) -> R:
            return await work(*args, **arguments)

        return awaited

    @wraps(work)
    def at_once(*args: Any, **arguments: Any) -> R:
        coroutine = work(*args, **arguments)
        try:
            coroutine.send(None)
        except StopIteration as ended:
            result: R = ended.value
            return result
        raise AssertionError("a coroutine around sync methods must not wait")

    return at_once
