"""Drives a coroutine step by step inside an asyncio task that is not its own.

Creating a task costs more than most async functions that end without waiting. So one task runs many coroutines one
after another, each with context variables of its own: it takes the first step of each (`start_coroutine`). If a
coroutine waits, the task stays with it until it ends (`resume_coroutine`).
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any

import msgspec

from detent.model import fork_count

__all__ = ["SuspendedCoroutine", "resume_coroutine", "start_coroutine"]


class SuspendedCoroutine(msgspec.Struct, frozen=True):
    """A coroutine that has started and now waits for `awaited`."""

    coroutine: Coroutine[Any, Any, Any]
    context: Context
    forks_before: int
    awaited: Any


def start_coroutine(coroutine: Coroutine[Any, Any, Any], context: Context, forks_before: int) -> Any:
    """Run the coroutine in `context` until it ends or waits. Return its value, or a `SuspendedCoroutine`.

    A function that forks may return in the copy of the process too. The copy, which has more than
    `forks_before`, holds no lease and must not go on as a worker: it exits here.
    """
    try:
        awaited = _step(context, coroutine.send, None, forks_before)
    except StopIteration as end:
        return end.value
    return SuspendedCoroutine(coroutine, context, forks_before, awaited)


@types.coroutine
def resume_coroutine(suspended: SuspendedCoroutine) -> Generator[Any, Any, Any]:
    """Await the rest of the coroutine; return its value or raise its error."""
    coroutine, awaited = suspended.coroutine, suspended.awaited
    step: Callable[[Any], Any]
    sent: Any
    while True:
        try:
            sent = yield awaited
            step = coroutine.send
        except BaseException as error:
            step, sent = coroutine.throw, error
        try:
            awaited = _step(suspended.context, step, sent, suspended.forks_before)
        except StopIteration as end:
            return end.value


def _step(context: Context, step: Callable[[Any], Any], sent: Any, forks_before: int) -> Any:
    try:
        return context.run(step, sent)
    finally:
        if fork_count.count != forks_before:
            os._exit(0)
