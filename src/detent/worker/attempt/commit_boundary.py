"""The commit boundary: `with ctx.commit() as tx`, or `async with` and `await tx.execute(...)`."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from detent.client.aio_threads import KeptThread, answer_of
from detent.client.transaction import AsyncOpenTx, OpenTx, refuse_unawaited
from detent.declare.task import Call
from detent.errors import WrongPlace
from detent.store.contract import Store, Tx

if TYPE_CHECKING:
    from types import TracebackType

    from detent.worker.attempt.context import AttemptContext

__all__ = ["AsyncBlock", "Block", "Boundary"]


class Block(OpenTx):
    """The open commit boundary. See `detent.Tx` for what each name promises."""

    def __init__(self, tx: Tx, context: AttemptContext) -> None:
        super().__init__(tx)
        self._context = context
        self._intents = 0

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


class AsyncBlock(AsyncOpenTx):
    """The open commit boundary of an async function."""

    def __init__(self, block: Block, thread: KeptThread) -> None:
        super().__init__(block, thread.do)
        self._block = block

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
