"""The commit boundary: `with ctx.commit() as tx`, or `async with` and `await tx.execute(...)`."""

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

__all__ = ["AsyncBlock", "Block", "Boundary", "Outcome", "refuse_late", "refuse_unawaited"]


class Outcome(NamedTuple):
    """The result of a statement: its rows, and how many rows it changed."""

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
        """Refuse everything from now on: the connection belongs to others."""
        self._open = None

    def _tx(self, word: str) -> Tx:
        if self._open is None:
            raise refuse_late(word)
        return self._open


class AsyncBlock:
    """The open commit boundary of an async function. Statements run on a thread of the block, so the loop goes on."""

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
    """What `ctx.commit()` returns: a context manager for `with` and for `async with`."""

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
            # The caller may have been cancelled while it waited for the connection: then nothing must stay open.
            thread.end_with(self._close_unused, error)
            raise

    def _close_unused(self, error: BaseException) -> None:
        if self._entered:
            self.__exit__(type(error), error, error.__traceback__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        unawaited = refuse_unawaited() if error is None and self._async_block.not_begun else None
        if unawaited is not None:
            kind, error = WrongPlace, unawaited
        # A cancel must not leave the block half ended, so its end is shielded and awaited.
        await asyncio.shield(answer_of(self._thread.end_with(self.__exit__, kind, error, trace)))
        if unawaited is not None:
            raise unawaited


def refuse_late(word: str) -> WrongPlace:
    """Return the error for a call after the block has ended: nothing would be written."""
    return WrongPlace(f"tx.{word}", "after its commit block has ended", "write inside the block")


def refuse_unawaited() -> WrongPlace:
    """Return the error for a statement that was not awaited: committing without it would lose it silently."""
    return WrongPlace("tx.execute", "without await in an async commit block", "write `await tx.execute(...)`")
