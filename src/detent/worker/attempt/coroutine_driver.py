"""Drives a coroutine step by step inside a task that is not its own.

Most async functions that end at once do not need a task each, and making one costs more than they do. So one task
carries one after another, each in context variables of its own: it takes the first step of each (`set_out`), and stays
with one that waits (`carry_on`).
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any

import msgspec

__all__ = ["SuspendedCoroutine", "carry_on", "set_out"]


class SuspendedCoroutine(msgspec.Struct, frozen=True):
    """A coroutine on its way, and what it waits for."""

    coroutine: Coroutine[Any, Any, Any]
    context: Context
    process: int
    awaited: Any


def set_out(coroutine: Coroutine[Any, Any, Any], context: Context, process: int) -> Any:
    """What the coroutine gives or raises, run in `context`; where it waits for something, it is `SuspendedCoroutine`.

    A function that forks may come back twice. The copy is another than `process`, holds nothing, and must not go on as
    a worker: it ends here.
    """
    try:
        awaited = _step(context, coroutine.send, None, process)
    except StopIteration as end:
        return end.value
    return SuspendedCoroutine(coroutine, context, process, awaited)


@types.coroutine
def carry_on(waiting: SuspendedCoroutine) -> Generator[Any, Any, Any]:
    """What it gives or raises in the end."""
    coroutine, awaited = waiting.coroutine, waiting.awaited
    step: Callable[[Any], Any]
    told: Any
    while True:
        try:
            told = yield awaited
            step = coroutine.send
        except BaseException as error:
            step, told = coroutine.throw, error
        try:
            awaited = _step(waiting.context, step, told, waiting.process)
        except StopIteration as end:
            return end.value


def _step(context: Context, step: Callable[[Any], Any], told: Any, process: int) -> Any:
    try:
        return context.run(step, told)
    finally:
        if os.getpid() != process:
            os._exit(0)
