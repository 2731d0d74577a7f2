"""One attempt, read top to bottom: decode, call, and how it ends."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from detent.declare.probe import Probed
from detent.declare.signals import Fatal, Snooze, Throttled
from detent.errors import DetentError, InvalidArguments, LeaseLost
from detent.errors.database import OUTAGES
from detent.model.backoff import throttle_delay
from detent.model.records import Abort, Claimed, Finish, Outcome
from detent.model.sanitize import error_text
from detent.store.contract import Store
from detent.worker.attempt.around_hooks import surrounded
from detent.worker.attempt.context import AttemptContext, EventSink
from detent.worker.attempt.coroutine_driver import SuspendedCoroutine, resume_coroutine, start_coroutine
from detent.worker.attempt.foreign_boundary import AlreadyThere
from detent.worker.attempt.history import UnknownEffect

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["Attempt"]

_LOOKS_MIN = 3
_UNOPENED = "ctx.commit() was called and its block never entered: write `with ctx.commit() as tx`"

log = logging.getLogger("detent.worker")


class _CannotTell(DetentError):
    """The probe looked, and does not know."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the probe cannot tell whether the effect has happened: {why}")


class Attempt:
    """One attempt at a job in this process. Whatever calls the function never raises what it raised: it gives how the
    attempt ends, or None where there is nothing left to say.

    An error after the commit does not undo it: the job has succeeded, and the error becomes a line in its record. Where
    the effect of an earlier attempt is `unknown`, the task's probe is asked before the function is called.
    """

    def __init__(
        self, claimed: Claimed, app: Detent, store: Store, sink: EventSink, unknown: UnknownEffect | None = None
    ) -> None:
        self.unknown = unknown
        self._asking = unknown is not None
        self.claimed = claimed
        self.task = app.find_task(claimed.task)
        self._hooks = app.around_hooks
        self._ids = ids = app.ids
        self.context = AttemptContext(claimed, self.task, store, sink, ids, app.settings)

    @property
    def _function(self) -> Callable[..., Any]:
        task = self.task
        if not self._hooks:
            return task.function
        return surrounded(self._hooks, task.function, task.name, is_async=task.is_async)

    @property
    def needs_preparing(self) -> bool:
        """Whether something is to be looked up or put on record before the function is called."""
        return not self.task.options.idempotent or self.claimed.attempt > 1

    @property
    def is_plain(self) -> bool:
        """Whether it is to be called in this process, and needs nothing before it is."""
        return not self.task.options.process and not self.claimed.committed and not self.needs_preparing

    def run(self) -> Finish | Abort | None:
        """Call a plain function (or run an async one to its end) on this thread."""
        try:
            arguments = self._arguments()
            with self.context.current():
                if self._asking and (ending := self._ask(arguments)) is not None:
                    return ending
                value = _called(self._function, self.context, arguments)
            return self._finished(value)
        except BaseException as error:
            return self._cannot_tell(error) if self._asking else self._failed(error)

    def _ask(self, arguments: dict[str, Any]) -> Finish | Abort | None:
        """What the probe's answer makes of this attempt; None where the function may be called."""
        assert self.unknown is not None
        if self.unknown.cancelled:
            self.context.request_cancel()
        probe = self.task.options.probe
        if probe is None:
            raise Fatal("nobody can tell whether its effect has happened: the task has no probe")
        self.context.event(f"attempt {self.unknown.since} may have had its effect: asking the probe", level="warning")
        hooks = self._hooks
        asked = (
            surrounded(hooks, probe, self.task.name, is_async=inspect.iscoroutinefunction(probe)) if hooks else probe
        )
        found = _called(asked, self.context, arguments)
        if not isinstance(found, Probed):
            raise TypeError(f"a probe answers with Probed.done, .not_done or .cannot_tell, not with {found!r:.80}")
        if found.found == "cannot tell":
            raise _CannotTell(found.why or "it gave no reason")
        ending = Finish(self.claimed.job_id, self.claimed.attempt, self.task.encode_result(found.result))
        self.context.event(f"the probe says: {found.found}", level="warning")
        self._asking = False
        if found.found == "done":
            return ending
        if self.context.cancelled:
            return self._abort("cancelled", "its effect has not happened, and somebody wants it stopped")
        if self.claimed.attempt - self.claimed.spared > self.claimed.attempts_max:
            return self._abort("error", "its effect has not happened, and no attempt is left to make it happen")
        return None

    def _cannot_tell(self, error: BaseException) -> Abort | None:
        """The probe gave no answer: it is asked again as often as the task is retried, and at least three times more;
        then a person is."""
        assert self.unknown is not None
        retry, looks = self.task.options.retry, self.unknown.probes
        delay, last = retry.delay(looks + 1, self._ids.random()), looks >= max(_LOOKS_MIN, retry.retries)
        match error:
            case LeaseLost(job_id=self.claimed.job_id):
                return None
            case Snooze():
                delay, last = error.delay, False
            case Throttled():
                delay, last = throttle_delay(looks + 1) if error.retry_after is None else error.retry_after, False
            case Fatal():
                last = True
        return self._abort("unknown", error_text(error), fatal=last, delay=delay)

    def start(self, process: int) -> Finish | Abort | SuspendedCoroutine | None:
        """Call an async function in this `process`, inside a task of whoever calls, until it ends or waits; one that
        waits is to be carried on in the same task."""
        try:
            coroutine = self._function(self.context, **self._arguments())
            value = start_coroutine(coroutine, self.context.alone(), process)
            return value if type(value) is SuspendedCoroutine else self._finished(value)
        except BaseException as error:
            return self._failed(error)

    async def resume(self, waiting: SuspendedCoroutine) -> Finish | Abort | None:
        """Await the rest."""
        try:
            return self._finished(await resume_coroutine(waiting))
        except BaseException as error:
            # CancelledError too: whoever cut this attempt short has ended it already, and any other comes from the
            # function itself.
            return self._failed(error)

    async def run_async(self, process: int) -> Finish | Abort | None:
        """Both, in a task of its own."""
        found = self.start(process)
        return await self.resume(found) if isinstance(found, SuspendedCoroutine) else found

    def retry_delay(self) -> float:
        """How long the job waits before its next attempt, by its task's policy."""
        counted = max(1, self.claimed.attempt - self.claimed.spared)
        return self.task.options.retry.delay(counted, self._ids.random())

    def _arguments(self) -> dict[str, Any]:
        try:
            return self.task.decode(self.claimed.payload)
        except InvalidArguments as error:
            raise Fatal(f"the payload no longer fits: {error}") from None

    def _finished(self, value: object) -> Finish:
        if self.context.unopened > 0 and not self.context.committed:
            self.context.event(_UNOPENED, level="warning")
            log.warning("job %d of %s: %s", self.claimed.job_id, self.task.name, _UNOPENED)
        result = None if value is None or self.context.stored_result else self.task.encode_result(value)
        return Finish(self.claimed.job_id, self.claimed.attempt, result)

    def _failed(self, error: BaseException) -> Finish | Abort | None:
        if isinstance(error, AlreadyThere):
            return Finish(self.claimed.job_id, self.claimed.attempt)
        if self.context.committed:
            self.context.event(f"error after the commit: {error_text(error)}", level="error")
            return Finish(self.claimed.job_id, self.claimed.attempt)
        match error:
            case LeaseLost(job_id=self.claimed.job_id):
                # Where somebody has taken it away, this is refused in turn. Otherwise it ran out because the database
                # was away: no attempt is used up, unless nobody knows how far it came.
                spared = self.task.options.idempotent and self.claimed.spared < self.context.settings.spared_max
                return self._abort("released", error_text(error)) if spared else None
            case Snooze():
                return self._abort("snoozed", str(error), delay=error.delay)
            case Throttled():
                wait = throttle_delay(self.claimed.spared + 1) if error.retry_after is None else error.retry_after
                return self._abort("throttled", str(error), delay=wait)
            case Fatal():
                return self._abort("error", error_text(error), fatal=True)
            case _ if isinstance(error, OUTAGES) and self.claimed.spared < self.context.settings.spared_max:
                return self._abort("released", error_text(error), delay=self.retry_delay())
            case _ if self.context.cancelled:
                return self._abort("cancelled", error_text(error))
            case _:
                covered = self.task.options.retry.covers(error)
                return self._abort("error", error_text(error), fatal=not covered, delay=self.retry_delay())

    def _abort(self, outcome: Outcome, error: str, *, fatal: bool = False, delay: float = 0.0) -> Abort:
        claimed = self.claimed
        return Abort(
            job_id=claimed.job_id, attempt=claimed.attempt, outcome=outcome, error=error, fatal=fatal, delay=delay
        )


def _called(function: Callable[..., Any], context: AttemptContext, arguments: dict[str, Any]) -> Any:
    """Call a plain function, or run an async one to its end. If an event loop runs on this thread, as in an async test,
    the async function gets a thread of its own."""
    value = function(context, **arguments)
    if not inspect.iscoroutine(value):
        return value
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(value)
    with ThreadPoolExecutor(max_workers=1) as apart:
        return apart.submit(copy_context().run, asyncio.run, value).result()
