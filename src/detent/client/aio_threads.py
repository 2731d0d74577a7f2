"""Threads that are kept, for what has to be begun, carried on and ended on one and the same of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from detent.client.aio_answers import answer_of
from detent.errors import WrongPlace
from detent.store.light_future import LightFuture

__all__ = ["KeptThread"]

T = TypeVar("T")

IDLE_MAX = 32
"""How many are kept while nobody needs them. To start a thread costs as much as several short transactions."""


class KeptThread:
    """One thread, which does what it is given in that order. `take` it, and `end_with` the last: what comes later is
    refused with `WrongPlace`, since the thread may be gone, or somebody else's."""

    def __init__(self) -> None:
        self._is_taken = True
        self._given: SimpleQueue[_Given | None] = SimpleQueue()
        threading.Thread(target=self._work, name="detent-block", daemon=True).start()

    @staticmethod
    def take() -> KeptThread:
        """One that nobody else has."""
        try:
            thread = _idle.pop()
        except IndexError:
            return KeptThread()
        thread._is_taken = True
        return thread

    def begin(self, work: Callable[..., T], *args: Any) -> LightFuture[T]:
        """Have it done, in the context of whoever asks."""
        if not self._is_taken:
            raise WrongPlace("tx.execute", "after its block has ended", "write inside the block")
        given = _Given(copy_context(), work, args)
        self._given.put(given)
        return given.answer

    async def do(self, work: Callable[..., T], *args: Any) -> T:
        """The same, awaited. What has not begun when the wait is cancelled is not done."""
        return await answer_of(self.begin(work, *args))

    def end_with(self, work: Callable[..., T], *args: Any) -> LightFuture[T]:
        """The last that it is given, and done whatever becomes of whoever waits for it; then somebody else may take the
        thread. In one go, so that it need not be woken again."""
        last = _Given(copy_context(), work, args)
        last.answer.begin()
        self._is_taken = False
        self._given.put(last)
        self._given.put(_Given(copy_context(), self._rest, ()))
        return last.answer

    def _rest(self) -> None:
        if len(_idle) < IDLE_MAX:
            _idle.append(self)
        else:
            self._given.put(None)

    def _work(self) -> None:
        while (given := self._given.get()) is not None:
            given.do()
            del given


class _Given:
    """A piece of work, and what came of it."""

    def __init__(self, context: Context, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.answer: LightFuture[Any] = LightFuture()
        self._context = context
        self._work = work
        self._args = args

    def do(self) -> None:
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
