"""Drives a coroutine step by step inside a task that is not its own.

Most async functions that end at once do not need a task each, and making one costs more than they do. So one task
carries one after another, each in context variables of its own, and learns when one of them begins to wait.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any

__all__ = ["carry"]


@types.coroutine
def carry(
    coroutine: Coroutine[Any, Any, Any], context: Context, process: int, waits: Callable[[], None] | None = None
) -> Generator[Any, Any, Any]:
    """What the coroutine gives or raises, run in `context`. `waits` is called once, before it first waits.

    A function that forks may come back twice. The copy is another than `process`, holds nothing, and must not go on as
    a worker: it ends here.
    """
    step: Callable[[Any], Any] = coroutine.send
    told: Any = None
    while True:
        try:
            awaited = context.run(step, told)
        except StopIteration as end:
            return end.value
        finally:
            if os.getpid() != process:
                os._exit(0)
        if waits is not None:
            waits()
            waits = None
        try:
            told = yield awaited
            step = coroutine.send
        except BaseException as error:
            step, told = coroutine.throw, error
