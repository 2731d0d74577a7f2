"""Calls a task's function inside the hooks declared with `@app.around`.

A hook sees the function's error but cannot swallow it: a job whose function failed must not succeed. If a hook itself
fails, the attempt fails, and a note on the error names the hook.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Any

from detent.declare.around_hooks import Around
from detent.declare.context import Context

__all__ = ["wrap_in_hooks"]


def wrap_in_hooks(
    hooks: Sequence[Around], function: Callable[..., Any], task: str, *, is_async: bool
) -> Callable[..., Any]:
    """Return the function wrapped in its hooks, the first one outermost; the function itself if there are none. Async
    hooks apply to async functions only."""
    chosen = [hook for hook in hooks if is_async or not hook.is_async]

    def run(ctx: Context, **arguments: Any) -> Any:
        with ExitStack() as stack:
            for hook in chosen:
                stack.enter_context(_Hook(hook, ctx, task))
            return function(ctx, **arguments)

    async def run_async(ctx: Context, **arguments: Any) -> Any:
        async with AsyncExitStack() as stack:
            for hook in chosen:
                if hook.is_async:
                    await stack.enter_async_context(_AsyncHook(hook, ctx, task))
                else:
                    stack.enter_context(_Hook(hook, ctx, task))
            return await function(ctx, **arguments)

    if not chosen:
        return function
    return run_async if is_async else run


class _Entered:
    """A hook around one attempt."""

    def __init__(self, hook: Around, ctx: Context, task: str) -> None:
        self._hook = hook
        self._ctx = ctx
        self._task = task
        self._manager: Any = None

    def _make(self, needs: str) -> None:
        self._manager = self._hook.enter(self._ctx)
        if not hasattr(self._manager, needs):
            raise TypeError(f"it returned a value of type {type(self._manager).__name__}, and no context manager")

    def _note(self, error: BaseException) -> None:
        error.add_note(f"the hook {self._hook.name!r} around task {self._task!r} failed")


class _Hook(_Entered):
    def __enter__(self) -> None:
        try:
            self._make("__enter__")
            self._manager.__enter__()
        except BaseException as error:
            self._note(error)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._manager.__exit__(kind, error, trace)
        except BaseException as raised:
            if raised is not error:
                self._note(raised)
            raise


class _AsyncHook(_Entered):
    async def __aenter__(self) -> None:
        try:
            self._make("__aenter__")
            await self._manager.__aenter__()
        except BaseException as error:
            self._note(error)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._manager.__aexit__(kind, error, trace)
        except BaseException as raised:
            if raised is not error:
                self._note(raised)
            raise
