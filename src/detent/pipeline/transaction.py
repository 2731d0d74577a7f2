"""One transaction for the user's statements and for what Detent writes with them: `stage`, `consolidate`, `retire`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

from detent.client.aio_threads import OnThread, on_one_thread
from detent.client.method_caller import AsyncCaller, Caller, is_async
from detent.client.transaction import AsyncOpenTx, OpenTx, refuse_unawaited
from detent.declare.signals import Fatal
from detent.store.contract import Tx

__all__ = ["TransactionCaller", "open_transaction"]


class _PipelineTx(OpenTx):
    """The `tx` of sync methods."""

    def __init__(self, tx: Tx, run_id: int) -> None:
        super().__init__(tx)
        self.run_id = run_id


class _AsyncPipelineTx(AsyncOpenTx):
    """The `tx` of async methods."""

    def __init__(self, tx: _PipelineTx, on_thread: OnThread) -> None:
        super().__init__(tx, on_thread)
        self.run_id = tx.run_id


class TransactionCaller:
    """Calls methods of the pipeline, sync or async, in an open transaction."""

    def __init__(self, tx: _PipelineTx, on_thread: OnThread | None) -> None:
        self._tx = tx
        self._on_thread = on_thread
        self._aio = None if on_thread is None else _AsyncPipelineTx(tx, on_thread)

    async def call(self, method: Callable[..., Any], items: list[Any]) -> None:
        """Call a method with the transaction and the items. `Fatal` if it returns a coroutine that is never awaited,
        since its writes would be lost silently."""
        if self._aio is None or self._on_thread is None:
            found = method(self._tx, items)
        elif is_async(method):
            found = await method(self._aio, items)
        else:
            found = await self._on_thread(method, self._tx, items)
        if inspect.iscoroutine(found):
            found.close()
            raise Fatal(f"{method.__name__} returned a coroutine. Declare it with `async def`.")
        if self._aio is not None and self._aio.not_begun:
            raise refuse_unawaited()


@asynccontextmanager
async def open_transaction(
    caller: Caller, block: AbstractContextManager[Tx], run_id: int
) -> AsyncIterator[TransactionCaller]:
    """Open the transaction; on a thread of its own if async methods are called in it."""
    if isinstance(caller, AsyncCaller):
        async with on_one_thread(block) as (opened, on_thread):
            tx = _PipelineTx(opened, run_id)
            try:
                yield TransactionCaller(tx, on_thread)
            finally:
                tx.end()
        return
    with block as opened:
        tx = _PipelineTx(opened, run_id)
        try:
            yield TransactionCaller(tx, None)
        finally:
            tx.end()
