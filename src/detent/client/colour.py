"""Methods of a batch or a pipeline may be plain or async; what is done around them is written once, for both.

It is written as coroutines. Around plain methods they never wait, so they are run to their end at once, on the
worker's thread; around async ones they are awaited on its loop, and the database is asked on a thread.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from detent.client.aio import on_some_thread

__all__ = ["AsyncColour", "Colour", "PlainColour", "as_task", "colour_of", "is_async"]

R = TypeVar("R")


class PlainColour:
    """Everything happens here and now."""

    async def ask(self, function: Callable[..., R], *args: Any) -> R:
        """Ask the database."""
        return function(*args)

    async def call(self, method: Callable[..., Any], *args: Any) -> Any:
        """Call a method of the user's."""
        return method(*args)

    async def each(self, method: Callable[[], Any]) -> AsyncIterator[Any]:
        """What a method of the user's gives, one by one."""
        for one in method():
            yield one


class AsyncColour(PlainColour):
    """The loop goes on while anybody waits; a plain method beside async ones is called on a thread."""

    async def ask(self, function: Callable[..., R], *args: Any) -> R:
        return await on_some_thread(function, *args)

    async def call(self, method: Callable[..., Any], *args: Any) -> Any:
        if not is_async(method):
            return await on_some_thread(method, *args)
        found = method(*args)
        return await found if inspect.iscoroutine(found) else found

    async def each(self, method: Callable[[], Any]) -> AsyncIterator[Any]:
        found = method()
        if inspect.iscoroutine(found):
            for one in await found:
                yield one
            return
        async for one in found:
            yield one


Colour = PlainColour | AsyncColour


def is_async(method: Callable[..., Any] | None) -> bool:
    """Whether it is a coroutine, or an async generator."""
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def colour_of(*methods: Callable[..., Any] | None) -> Colour:
    """How these methods are to be called together."""
    return AsyncColour() if any(is_async(method) for method in methods) else PlainColour()


def as_task(work: Callable[..., Coroutine[Any, Any, R]], colour: Colour) -> Callable[..., Any]:
    """A function of that colour, to be declared as a task, with the parameters of `work`."""
    if isinstance(colour, AsyncColour):

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
        raise AssertionError("what is done around a plain method never waits")

    return at_once
