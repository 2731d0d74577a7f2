"""The commit boundary in the hand: `with ctx.commit() as tx`, or `async with` and `await tx.execute(...)`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from detent.client.aio_answers import answer_of
from detent.client.aio_threads import KeptThread
from detent.declare.task import Call
from detent.errors import WrongPlace
from detent.store.contract import Store, Tx

if TYPE_CHECKING:
    from types import TracebackType

    from detent.worker.attempt.context import AttemptContext

__all__ = ["AsyncBlock", "Block", "Boundary", "Outcome", "not_awaited", "over"]


class Outcome(NamedTuple):
    """What a statement gave: its rows, and how many rows it changed."""

    rows: list[tuple[Any, ...]]
    rowcount: int


class Block:
    """The open commit boundary. See `CommitBlock` for what each name promises."""

    def __init__(self, tx: Tx, context: AttemptContext) -> None:
        self._open: Tx | None = tx
        self._context = context
        self._intents = 0

    @property
    def connection(self) -> Any:
        return self._tx("connection").connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Outcome:
        return Outcome(*self._tx("execute").execute(sql, params))

    def intend(self, call: Call[Any], *, key: str | None = None) -> None:
        tx = self._tx("intend")
        self._intents += 1
        tx.intend(self._context.intent(call, key, self._intents))

    def result(self, value: object) -> None:
        tx = self._tx("result")
        text = self._context.encode_result(value)
        if text is not None:
            tx.result(text)
            self._context.stored_result = True

    def end(self) -> None:
        """From now on its connection is somebody else's: what comes late is refused."""
        self._open = None

    def _tx(self, word: str) -> Tx:
        if self._open is None:
            raise over(word)
        return self._open


class AsyncBlock:
    """The same for async functions: each statement on the block's own thread, so the loop goes on."""

    def __init__(self, block: Block, thread: KeptThread) -> None:
        self._block = block
        self._thread = thread
        self.not_begun = 0

    @property
    def connection(self) -> Any:
        return self._block.connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Coroutine[Any, Any, Outcome]:
        self.not_begun += 1
        return self._execute(sql, params)

    async def _execute(self, sql: str, params: dict[str, Any] | None) -> Outcome:
        self.not_begun -= 1
        return await self._thread.do(self._block.execute, sql, params)

    def intend(self, call: Call[Any], *, key: str | None = None) -> None:
        self._block.intend(call, key=key)

    def result(self, value: object) -> None:
        self._block.result(value)


class Boundary:
    """What `ctx.commit()` gives: a context manager of both colours."""

    def __init__(self, context: AttemptContext, store: Store) -> None:
        self._context = context
        self._store = store
        self._tx: AbstractContextManager[Tx] | None = None
        self._block: Block
        self._async_block: AsyncBlock
        self._thread: KeptThread | None = None
        self._entered = False

    def __enter__(self) -> Block:
        self._context.before_commit()
        self._tx = self._store.commit_block(self._context.job_id, self._context.attempt)
        block = self._block = Block(self._tx.__enter__(), self._context)
        self._context.block_entered()
        self._entered = True
        return block

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tx is not None
        self._block.end()
        try:
            self._tx.__exit__(kind, error, trace)
            if error is None:
                self._context.committed = True
        finally:
            self._context.block_left()

    async def __aenter__(self) -> AsyncBlock:
        thread = self._thread = KeptThread.take()
        try:
            block = self._async_block = AsyncBlock(await thread.do(self.__enter__), thread)
            return block
        except BaseException as error:
            # Whoever was cancelled while it waited is gone when its turn comes: then nothing must stay open.
            thread.end_with(self._leave_behind, error)
            raise

    def _leave_behind(self, error: BaseException) -> None:
        if self._entered:
            self.__exit__(type(error), error, error.__traceback__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        forgotten = not_awaited() if error is None and self._async_block.not_begun else None
        if forgotten is not None:
            kind, error = WrongPlace, forgotten
        # A cancel must not leave the block half way: its end is waited for.
        await asyncio.shield(answer_of(self._thread.end_with(self.__exit__, kind, error, trace)))
        if forgotten is not None:
            raise forgotten


def over(word: str) -> WrongPlace:
    """A block that has ended writes nothing, and what it would intend, nobody would enqueue."""
    return WrongPlace(f"tx.{word}", "after its commit block has ended", "write inside the block")


def not_awaited() -> WrongPlace:
    """To commit without a statement that the function asked for would lose it without a word."""
    return WrongPlace("tx.execute", "without await in an async commit block", "write `await tx.execute(...)`")
