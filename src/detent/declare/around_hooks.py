"""Hooks around every attempt, declared with `@app.around`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, cast

from detent.declare.context import Context
from detent.errors import InvalidInput

__all__ = ["Around", "AroundHook", "hook_of"]

AroundHook = Callable[
    [Context],
    Iterator[None] | AsyncIterator[None] | AbstractContextManager[Any] | AbstractAsyncContextManager[Any],
]
"""A function of the context: a generator with one `yield`, plain or async, or one that returns a context manager."""

_ALLOWED = "a function of the context with one `yield`, or one that returns a context manager"


class Around:
    """A declared hook. `enter` makes the context manager for one attempt."""

    def __init__(self, name: str, enter: Callable[[Context], Any], *, is_async: bool) -> None:
        self.name = name
        self.enter = enter
        self.is_async = is_async


def hook_of(function: object) -> Around:
    """Check a hook when it is declared, and return it. `InvalidInput`."""
    if not callable(function):
        raise InvalidInput("around", f"a value of type {type(function).__name__}", _ALLOWED)
    needed = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.default is inspect.Parameter.empty and one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    if len(needed) != 1:
        found = f"a function with {len(needed)} parameters" if needed else "a function with no parameter"
        raise InvalidInput("around", found, _ALLOWED)
    name = getattr(function, "__qualname__", repr(function)).rpartition("<locals>.")[2]
    if inspect.isasyncgenfunction(function):
        return Around(name, asynccontextmanager(function), is_async=True)
    if inspect.isgeneratorfunction(function):
        return Around(name, contextmanager(function), is_async=False)
    # A function that returns a context manager: contextlib keeps the generator function it was made from.
    is_async = inspect.isasyncgenfunction(inspect.unwrap(function))
    return Around(name, cast(Callable[[Context], Any], function), is_async=is_async)
