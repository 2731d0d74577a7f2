"""The commit boundary on a connection of the user's own: `with ctx.commit(connection) as tx`.

- On Detent's own database, the user's statements and the commit of the job are one transaction.
- On another database, the user's statements and a marker are one transaction there, and the commit of the job here
  follows. If the worker dies in between, the next attempt finds the marker when it enters the block: it commits the job
  here, and runs neither the block nor anything after it.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from detent.client.transaction import Outcome, refuse_late, refuse_unawaited
from detent.declare.task import Call
from detent.errors import DetentError, WrongPlace
from detent.model.records import Commit, EffectBegun, NewJob
from detent.store.commit_block_rules import failed_inside, goes_back, refuse_ending
from detent.store.contract import Store
from detent.store.user_database import marker
from detent.store.user_database.connection import Call as Ask
from detent.store.user_database.connection import ForeignConnection, Run, Steps, drive, drive_async, wrap_connection

if TYPE_CHECKING:
    from types import TracebackType

    from detent.worker.attempt.context import AttemptContext

__all__ = ["AlreadyCommittedElsewhere", "ForeignBoundary"]


class AlreadyCommittedElsewhere(BaseException):
    """An earlier attempt has committed in the other database, so nothing is left to do. It is not an error, and not an
    `Exception`, so that the function does not catch it."""


class _Block:
    """What the plain and the async block have in common. See `detent.Tx` for what each name promises."""

    def __init__(self, connection: ForeignConnection, context: AttemptContext) -> None:
        self._connection = connection
        self._context = context
        self._ended = False
        self.not_begun = 0
        self.intents: list[NewJob] = []
        self.stored: str | None = None
        self.failed: Exception | None = None

    @property
    def connection(self) -> Any:
        return self._connection.given

    def intend(self, call: Call[Any], *, key: str | None = None) -> None:
        self._check_open("intend")
        self.intents.append(self._context.intent(call, key, len(self.intents) + 1))

    def result(self, value: object) -> None:
        self._check_open("result")
        self.stored = self._context.encode_result(value)

    def end(self) -> None:
        """Refuse everything from now on."""
        self._ended = True

    @property
    def has_failed(self) -> bool:
        """Whether a statement failed and the user's function swallowed its error."""
        return self.failed is not None and not self._connection.is_usable

    @contextmanager
    def _watching(self, sql: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.failed = error
            raise
        if goes_back(sql):
            self.failed = None

    def _check_open(self, word: str) -> None:
        if self._ended:
            raise refuse_late(word)


class _PlainBlock(_Block):
    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Outcome:
        self._check_open("execute")
        refuse_ending(sql)
        with self._watching(sql):
            return Outcome(*self._connection.run(Run(sql, params)))


class _AsyncBlock(_Block):
    def execute(self, sql: str, params: dict[str, Any] | None = None) -> Coroutine[Any, Any, Outcome]:
        self.not_begun += 1
        return self._execute(sql, params)

    async def _execute(self, sql: str, params: dict[str, Any] | None) -> Outcome:
        self.not_begun -= 1
        self._check_open("execute")
        refuse_ending(sql)
        with self._watching(sql):
            return Outcome(*await self._connection.run_async(Run(sql, params)))


class ForeignBoundary:
    """What `ctx.commit(connection)` returns. Use `with` for a plain connection and `async with` for an async one."""

    def __init__(self, context: AttemptContext, store: Store, connection: Any) -> None:
        self._context = context
        self._store = store
        self._connection = wrap_connection(connection)
        self._begun: EffectBegun | None = None
        self._block: _Block

    def __enter__(self) -> _PlainBlock:
        self._check_kind(is_async=False)
        self._context.before_commit()
        drive(self._entering(), self._connection)
        block = self._block = _PlainBlock(self._connection, self._context)
        self._context.block_entered()
        return block

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._block.end()
        try:
            drive(self._leaving() if error is None else marker.roll_back(), self._connection)
        finally:
            self._context.block_left()

    async def __aenter__(self) -> _AsyncBlock:
        self._check_kind(is_async=True)
        await drive_async(_first(self._context, self._entering()), self._connection)
        block = self._block = _AsyncBlock(self._connection, self._context)
        self._context.block_entered()
        return block

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._block.end()
        unawaited = refuse_unawaited() if error is None and self._block.not_begun else None
        try:
            whole = error is None and unawaited is None
            await drive_async(self._leaving() if whole else marker.roll_back(), self._connection)
        finally:
            self._context.block_left()
        if unawaited is not None:
            raise unawaited

    def _check_kind(self, *, is_async: bool) -> None:
        if self._connection.is_async != is_async:
            have, use = ("a plain", "with") if is_async else ("an async", "async with")
            raise WrongPlace(
                "ctx.commit(connection)", f"with {have} connection like this", f"enter the block by `{use}`"
            )

    def _entering(self) -> Steps[None]:
        job_id, attempt = self._context.job_id, self._context.attempt
        if (yield from marker.is_own(self._connection, self._store)):
            yield from marker.enter_own(self._connection, self._store, job_id, attempt)
            return
        found = yield from marker.enter(self._connection, self._store, job_id, attempt)
        if isinstance(found, marker.Found):
            yield from self._mark(Commit(job_id=job_id, attempt=attempt, result=found.result, intents=found.intents))
            self._context.event(f"attempt {found.attempt} has committed in the other database: nothing is left to do")
            raise AlreadyCommittedElsewhere
        self._begun = found

    def _leaving(self) -> Steps[None]:
        block, begun = self._block, self._begun
        if block.has_failed:
            yield from marker.roll_back()
            raise failed_inside(block.failed) from block.failed
        if begun is None:
            job_id, attempt = self._context.job_id, self._context.attempt
            yield from marker.leave_own(self._connection, self._store, job_id, attempt, block.stored, block.intents)
            self._committed(block.stored)
        else:
            mark = yield from marker.leave(self._connection, self._store, begun, block.stored, block.intents)
            yield from self._mark(mark)

    def _mark(self, mark: Commit) -> Steps[None]:
        """Commit the job here: its effect is committed in the other database."""
        answer = yield Ask(lambda: self._store.job_commit(mark))
        if isinstance(answer, DetentError):
            raise answer
        self._committed(mark.result)

    def _committed(self, result: str | None) -> None:
        self._context.committed = True
        self._context.stored_result = result is not None


def _first(context: AttemptContext, steps: Steps[None]) -> Steps[None]:
    """Write the events from before the block, then take the steps."""
    yield Ask(context.before_commit)
    yield from steps
