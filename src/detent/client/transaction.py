"""The transaction that the user's functions write in: `tx` of a commit block, and of the methods of a pipeline."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, NamedTuple

from detent.client.aio_threads import OnThread
from detent.errors import WrongPlace
from detent.store.contract import Tx

__all__ = ["AsyncOpenTx", "OpenTx", "Outcome", "refuse_late", "refuse_unawaited"]


class Outcome(NamedTuple):
    """The result of a statement: its rows, and how many rows it changed."""

    rows: list[tuple[Any, ...]]
    rowcount: int


class OpenTx:
    """An open transaction. After `end` everything is refused with `WrongPlace`."""

    def __init__(self, tx: Tx) -> None:
        self._open: Tx | None = tx

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs. Detent commits or rolls back its transaction."""
        return self._tx("connection").connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Outcome:
        """Run a statement with `:name` parameters. Return its rows, and how many rows it changed."""
        return Outcome(*self._tx("execute").execute(sql, params))

    def end(self) -> None:
        """Refuse everything from now on: the connection belongs to others."""
        self._open = None

    def _tx(self, word: str) -> Tx:
        if self._open is None:
            raise refuse_late(word)
        return self._open


class AsyncOpenTx:
    """An open transaction for async functions. Statements run on a thread of their own, so the loop goes on."""

    def __init__(self, tx: OpenTx, on_thread: OnThread) -> None:
        self._tx = tx
        self._on_thread = on_thread
        self.not_begun = 0

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs. Detent commits or rolls back its transaction."""
        return self._tx.connection

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Coroutine[Any, Any, Outcome]:
        """Run a statement with `:name` parameters. Return its rows, and how many rows it changed."""
        self.not_begun += 1
        return self._execute(sql, params)

    async def _execute(self, sql: str, params: dict[str, Any] | None) -> Outcome:
        self.not_begun -= 1
        outcome: Outcome = await self._on_thread(self._tx.execute, sql, params)
        return outcome


def refuse_late(word: str) -> WrongPlace:
    """Return the error for a call after the transaction has ended: nothing would be written."""
    return WrongPlace(
        f"tx.{word}", "after its transaction has ended", "write inside the block or method it was given to"
    )


def refuse_unawaited() -> WrongPlace:
    """Return the error for a statement that was not awaited: committing without it would lose it silently."""
    return WrongPlace("tx.execute", "without await in async code", "write `await tx.execute(...)`")
