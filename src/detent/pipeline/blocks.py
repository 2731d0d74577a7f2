"""One transaction for statements of the user's and what Detent writes with them: `stage`, `consolidate`, `retire`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, NamedTuple

from detent.client.aio import OnThread, on_one_thread
from detent.client.colour import AsyncColour, Colour, is_async
from detent.declare.signals import Fatal
from detent.errors import WrongPlace
from detent.store.contract import Tx

__all__ = ["AsyncPipelineTx", "Hand", "Outcome", "PipelineTx", "in_block"]


class Outcome(NamedTuple):
    """What a statement gave: its rows, and how many rows it changed."""

    rows: list[tuple[Any, ...]]
    rowcount: int


class PipelineTx:
    """What `stage`, `consolidate` and `retire` write with: one transaction, together with the mark of what they were
    given."""

    def __init__(self, tx: Tx, run_id: int) -> None:
        self._open: Tx | None = tx
        self.run_id = run_id

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs. Its transaction is not yours to end."""
        return self._tx("connection").connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Outcome:
        """Run a statement with `:name` parameters: its rows, and how many it changed."""
        return Outcome(*self._tx("execute").execute(sql, params))

    def end(self) -> None:
        """From now on its connection is somebody else's."""
        self._open = None

    def _tx(self, word: str) -> Tx:
        if self._open is None:
            raise WrongPlace(f"tx.{word}", "after its transaction has ended", "write inside the method it was given to")
        return self._open


class AsyncPipelineTx:
    """The same for async methods: statements are awaited, and the loop goes on meanwhile."""

    def __init__(self, tx: PipelineTx, on_thread: OnThread) -> None:
        self._tx = tx
        self._on_thread = on_thread
        self.not_begun = 0
        self.run_id = tx.run_id

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs. Its transaction is not yours to end."""
        return self._tx.connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Coroutine[Any, Any, Outcome]:
        """Run a statement with `:name` parameters: its rows, and how many it changed."""
        self.not_begun += 1
        return self._execute(sql, params)

    async def _execute(self, sql: str, params: dict[str, Any] | None) -> Outcome:
        self.not_begun -= 1
        outcome: Outcome = await self._on_thread(self._tx.execute, sql, params)
        return outcome


class Hand:
    """Calls methods of the pipeline in an open transaction, each by its colour."""

    def __init__(self, tx: PipelineTx, on_thread: OnThread | None) -> None:
        self._tx = tx
        self._on_thread = on_thread
        self._aio = None if on_thread is None else AsyncPipelineTx(tx, on_thread)

    async def call(self, method: Callable[..., Any], items: list[Any]) -> None:
        """Give it the transaction and these. `Fatal` where it gives a coroutine that nobody awaits: what it was to
        write would be lost without a word."""
        if self._aio is None or self._on_thread is None:
            found = method(self._tx, items)
        elif is_async(method):
            found = await method(self._aio, items)
        else:
            found = await self._on_thread(method, self._tx, items)
        if inspect.iscoroutine(found):
            found.close()
            raise Fatal(f"{method.__name__} gave a coroutine: declare it with `async def`")
        if self._aio is not None and self._aio.not_begun:
            raise WrongPlace("tx.execute", "without await in an async method", "write `await tx.execute(...)`")


@asynccontextmanager
async def in_block(colour: Colour, block: AbstractContextManager[Tx], run_id: int) -> AsyncIterator[Hand]:
    """The block, open; on a thread of its own where anything async is called in it."""
    if isinstance(colour, AsyncColour):
        async with on_one_thread(block) as (opened, on_thread):
            tx = PipelineTx(opened, run_id)
            try:
                yield Hand(tx, on_thread)
            finally:
                tx.end()
        return
    with block as opened:
        tx = PipelineTx(opened, run_id)
        try:
            yield Hand(tx, None)
        finally:
            tx.end()
