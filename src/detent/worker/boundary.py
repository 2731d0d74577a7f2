"""The commit boundary in the hand: `with ctx.commit() as tx`, or `async with` and `await tx.execute(...)`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from detent.declare.task import Call
from detent.store.contract import Store, Tx

if TYPE_CHECKING:
    from types import TracebackType

    from detent.worker.context import AttemptContext

__all__ = ["AsyncBlock", "Block", "Boundary", "Outcome", "on_thread"]

T = TypeVar("T")


class Outcome(NamedTuple):
    """What a statement gave: its rows, and how many rows it changed."""

    rows: list[tuple[Any, ...]]
    rowcount: int


class Block:
    """The open commit boundary. See `CommitBlock` for what each name promises."""

    def __init__(self, tx: Tx, context: AttemptContext) -> None:
        self._tx = tx
        self._context = context
        self._intents = 0

    @property
    def connection(self) -> Any:
        return self._tx.connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Outcome:
        return Outcome(*self._tx.execute(sql, params))

    def intend(self, call: Call[Any], *, key: str | None = None) -> None:
        self._intents += 1
        self._tx.intend(self._context.intent(call, key, self._intents))

    def result(self, value: object) -> None:
        text = self._context.encode_result(value)
        if text is not None:
            self._tx.result(text)
            self._context.stored_result = True


class AsyncBlock:
    """The same for async functions: each statement on the block's own thread, so the loop goes on."""

    def __init__(self, block: Block, thread: ThreadPoolExecutor) -> None:
        self._block = block
        self._thread = thread

    @property
    def connection(self) -> Any:
        return self._block.connection

    async def execute(self, sql: str, params: dict[str, Any] | None = None) -> Outcome:
        return await on_thread(self._thread, self._block.execute, sql, params)

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
        self._thread: ThreadPoolExecutor | None = None

    def __enter__(self) -> Block:
        self._context.before_commit()
        self._tx = self._store.commit_block(self._context.job_id, self._context.attempt)
        block = Block(self._tx.__enter__(), self._context)
        self._context.block_entered()
        return block

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tx is not None
        try:
            self._tx.__exit__(kind, error, trace)
            if error is None:
                self._context.committed = True
        finally:
            self._context.block_left()

    async def __aenter__(self) -> AsyncBlock:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="detent-commit")
        try:
            return AsyncBlock(await on_thread(self._thread, self.__enter__), self._thread)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        try:
            # A cancel must not leave the block half way: its end is waited for.
            await asyncio.shield(on_thread(self._thread, self.__exit__, kind, error, trace))
        finally:
            self._thread.shutdown(wait=False)


async def on_thread(thread: ThreadPoolExecutor, work: Callable[..., T], *args: Any) -> T:
    """Run on that thread without holding up the loop."""
    return await asyncio.get_running_loop().run_in_executor(thread, work, *args)
