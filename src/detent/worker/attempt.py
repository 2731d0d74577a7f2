"""One attempt, read top to bottom: decode, call, and how it ends."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from detent.errors import (
    DatabaseBusy,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnreachable,
    InvalidArguments,
    LeaseLost,
    OutcomeUnknown,
)
from detent.model.backoff import throttle_delay
from detent.model.records import Abort, Claimed, Finish, Outcome
from detent.model.sanitize import error_text
from detent.store.contract import Store
from detent.worker.carry import carry
from detent.worker.context import AttemptContext, EventSink
from detent.worker.signals import Fatal, Snooze, Throttled

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["Attempt"]


class Attempt:
    """One attempt at a job in this process. `run` and `run_async` never raise what the function raised: they give how
    the attempt ends, or None where the lease was lost and there is nothing left to say.

    An error after the commit does not undo it: the job has succeeded, and the error becomes a line in its record.
    """

    def __init__(self, claimed: Claimed, app: Detent, store: Store, sink: EventSink) -> None:
        self.claimed = claimed
        self.task = app.find_task(claimed.task)
        self.context = AttemptContext(claimed, self.task, store, sink, app.ids, app.settings)
        self._ids = app.ids

    def run(self) -> Finish | Abort | None:
        """Call a plain function (or run an async one to its end) on this thread."""
        try:
            arguments = self._arguments()
            with self.context.current():
                value: Any = self.task.function(self.context, **arguments)
                if inspect.iscoroutine(value):
                    value = asyncio.run(value)
            return self._finished(value)
        except BaseException as error:
            return self._failed(error)

    async def run_async(self, waits: Callable[[], None] | None = None) -> Finish | Abort | None:
        """Await an async function on this loop. `waits` is called when it waits for the first time, if ever."""
        try:
            coroutine = self.task.function(self.context, **self._arguments())
            return self._finished(await carry(coroutine, self.context.alone(), waits))
        except BaseException as error:
            # CancelledError too: whoever cut this attempt short has ended it already, and any other comes from the
            # function itself.
            return self._failed(error)

    def delay(self) -> float:
        """How long the job waits before its next attempt, by its task's policy."""
        counted = max(1, self.claimed.attempt - self.claimed.spared)
        return self.task.options.retry.delay(counted, self._ids.random())

    def _arguments(self) -> dict[str, Any]:
        try:
            return self.task.decode(self.claimed.payload)
        except InvalidArguments as error:
            raise Fatal(f"the payload no longer fits: {error}") from None

    def _finished(self, value: object) -> Finish:
        result = None if self.context.stored_result else self.task.encode_result(value)
        return Finish(self.claimed.job_id, self.claimed.attempt, result)

    def _failed(self, error: BaseException) -> Finish | Abort | None:
        if self.context.committed:
            self.context.event(f"error after the commit: {error_text(error)}", level="error")
            return Finish(self.claimed.job_id, self.claimed.attempt)
        match error:
            case LeaseLost(job_id=self.claimed.job_id):
                return None
            case Snooze():
                return self._abort("snoozed", str(error), delay=error.delay)
            case Throttled():
                wait = throttle_delay(self.claimed.spared + 1) if error.retry_after is None else error.retry_after
                return self._abort("throttled", str(error), delay=wait)
            case Fatal():
                return self._abort("error", error_text(error), fatal=True)
            case DatabaseUnreachable() | DatabaseBusy() | DatabaseFull() | DatabaseReadOnly() | OutcomeUnknown() if (
                self.claimed.spared < self.context.settings.spared_max
            ):
                return self._abort("released", error_text(error), delay=self.delay())
            case _ if self.context.cancelled:
                return self._abort("cancelled", error_text(error))
            case _:
                covered = self.task.options.retry.covers(error)
                return self._abort("error", error_text(error), fatal=not covered, delay=self.delay())

    def _abort(self, outcome: Outcome, error: str, *, fatal: bool = False, delay: float = 0.0) -> Abort:
        claimed = self.claimed
        return Abort(
            job_id=claimed.job_id, attempt=claimed.attempt, outcome=outcome, error=error, fatal=fatal, delay=delay
        )
