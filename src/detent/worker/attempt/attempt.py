"""One attempt at a job: decode its arguments, call its function, and return how it ended."""

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
from detent.errors import DetentError, InvalidArguments, LeaseLost, StepTooNew
from detent.errors.database import OUTAGES
from detent.model.backoff import throttle_delay
from detent.model.records import Abort, Claimed, Finish, Outcome
from detent.model.stored_text import error_text
from detent.store.contract import Store
from detent.worker.attempt.around_hooks import wrap_in_hooks
from detent.worker.attempt.context import AttemptContext
from detent.worker.attempt.coroutine_driver import SuspendedCoroutine, resume_coroutine, start_coroutine
from detent.worker.attempt.endings import end_attempt
from detent.worker.attempt.event_sink import EventSink
from detent.worker.attempt.foreign_boundary import AlreadyCommittedElsewhere
from detent.worker.attempt.history import UnknownEffect

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["Attempt"]

_PROBES_MIN = 3
_TOO_NEW_DELAY = 10.0
"""Seconds for which a workflow that needs a newer worker is left to the others."""
_UNOPENED = "ctx.commit() was called, but its block was never entered: write `with ctx.commit() as tx`"

log = logging.getLogger("detent.worker")


class _CannotTell(DetentError):
    """The probe could not tell whether the effect has happened."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the probe cannot tell whether the effect has happened: {why}")


class Attempt:
    """One attempt at a job in this process.

    The methods that call the function do not raise its errors: they return how the attempt ended, or None if there is
    nothing to write. An error after the commit does not undo the commit: the job has succeeded, and the error becomes
    an event. If the effect of an earlier attempt is `unknown`, the task's probe is called before the function.
    """

    def __init__(
        self, claimed: Claimed, app: Detent, store: Store, sink: EventSink, unknown: UnknownEffect | None = None
    ) -> None:
        self.unknown = unknown
        self._must_probe = unknown is not None
        self.claimed = claimed
        self.task = app.find_task(claimed.task)
        self._hooks = app.around_hooks
        self._ids = ids = app.ids
        self.context: AttemptContext
        if self.task.workflow is None:
            self.context = AttemptContext(claimed, self.task, store, sink, ids, app.settings)
        else:
            from detent.worker.attempt.workflow.contexts import context_of  # not loaded into workers without workflows

            self.context = context_of(claimed, self.task, store, sink, app)

    @property
    def _function(self) -> Callable[..., Any]:
        task = self.task
        function = task.function if task.workflow is None else self.context.body(task.function)
        if not self._hooks:
            return function
        return wrap_in_hooks(self._hooks, function, task.name, is_async=task.is_async)

    def prepare(self) -> None:
        """Read what has to be known before the function is called. It may wait for the database."""
        self.context.load()

    @property
    def needs_preparing(self) -> bool:
        """Whether something has to be read or recorded before the function is called."""
        return not self.task.options.idempotent or self.claimed.attempt > 1 or self.context.must_load

    @property
    def is_plain(self) -> bool:
        """Whether the function is called in this process, and needs no preparation."""
        return not self.task.options.process and not self.claimed.committed and not self.needs_preparing

    def run(self) -> Finish | Abort | None:
        """Call a plain function (or run an async one to its end) on this thread."""
        try:
            self.prepare()
            arguments = self._arguments()
            with self.context.current():
                if self._must_probe and (ending := self._probe(arguments)) is not None:
                    return ending
                value = _call(self._function, self.context, arguments)
            return self._finished(value)
        except BaseException as error:
            return self._cannot_tell(error) if self._must_probe else self._failed(error)

    def _probe(self, arguments: dict[str, Any]) -> Finish | Abort | None:
        """Call the probe; return how the attempt ends because of its answer, or None if the function may be called."""
        assert self.unknown is not None
        if self.unknown.cancelled:
            self.context.request_cancel()
        probe = self.task.options.probe
        if probe is None:
            raise Fatal("it is unknown whether its effect has happened, and the task has no probe")
        self.context.event(f"attempt {self.unknown.since} may have had its effect: asking the probe", level="warning")
        hooks = self._hooks
        asked = (
            wrap_in_hooks(hooks, probe, self.task.name, is_async=inspect.iscoroutinefunction(probe)) if hooks else probe
        )
        found = _call(asked, self.context, arguments)
        if not isinstance(found, Probed):
            raise TypeError(f"a probe answers with Probed.done, .not_done or .cannot_tell, not with {found!r:.80}")
        if found.found == "cannot tell":
            raise _CannotTell(found.why or "it gave no reason")
        ending = Finish(self.claimed.job_id, self.claimed.attempt, self.task.encode_result(found.result))
        self.context.event(f"the probe says: {found.found}", level="warning")
        self._must_probe = False
        if found.found == "done":
            return ending
        if self.context.cancelled:
            return self._abort("cancelled", "its effect has not happened, and a cancel was requested")
        if self.claimed.attempt - self.claimed.spared > self.claimed.attempts_max:
            return self._abort("error", "its effect has not happened, and no attempt is left")
        return None

    def _cannot_tell(self, error: BaseException) -> Abort | None:
        """Return the ending of an attempt whose probe gave no answer. The probe is called again as often as the task is
        retried, and at least three times more; then a person has to settle the job."""
        assert self.unknown is not None
        retry, probes = self.task.options.retry, self.unknown.probes
        delay, last = retry.delay(probes + 1, self._ids.random()), probes >= max(_PROBES_MIN, retry.retries)
        match error:
            case LeaseLost(job_id=self.claimed.job_id):
                return None
            case Snooze():
                delay, last = error.delay, False
            case Throttled():
                delay, last = throttle_delay(probes + 1) if error.retry_after is None else error.retry_after, False
            case Fatal():
                last = True
        return self._abort("unknown", error_text(error), fatal=last, delay=delay)

    def start(self, forks_before: int) -> Finish | Abort | SuspendedCoroutine | None:
        """Call an async function inside the caller's task until it ends or waits. If it waits, the same task has to
        await `resume`. `forks_before` is what `forks.count` was when this process began to work."""
        try:
            coroutine = self._function(self.context, **self._arguments())
            value = start_coroutine(coroutine, self.context.copy_variables(), forks_before)
            return value if type(value) is SuspendedCoroutine else self._finished(value)
        except BaseException as error:
            return self._failed(error)

    async def resume(self, waiting: SuspendedCoroutine) -> Finish | Abort | None:
        """Await the rest of a function that waits."""
        try:
            return self._finished(await resume_coroutine(waiting))
        except BaseException as error:
            # CancelledError too: if this attempt was cut short, it has ended already; otherwise the function raised it.
            return self._failed(error)

    async def run_async(self, forks_before: int) -> Finish | Abort | None:
        """Call an async function and await it, in a task of its own."""
        found = self.start(forks_before)
        return await self.resume(found) if isinstance(found, SuspendedCoroutine) else found

    def end_unprepared(self, error: DetentError) -> Abort:
        """Return how the attempt ends if it could not be prepared. It has not begun, and is not used up."""
        if isinstance(error, StepTooNew):
            return self._abort("snoozed", str(error), delay=_TOO_NEW_DELAY)
        return end_attempt(self.claimed)

    def retry_delay(self) -> float:
        """Return the seconds that the job waits before its next attempt, by its task's retry policy."""
        counted = max(1, self.claimed.attempt - self.claimed.spared)
        return self.task.options.retry.delay(counted, self._ids.random())

    def _arguments(self) -> dict[str, Any]:
        try:
            return self.task.decode(self.context.payload)
        except InvalidArguments as error:
            raise Fatal(f"the payload no longer fits: {error}") from None

    def _finished(self, value: object) -> Finish:
        if self.context.unopened > 0 and not self.context.committed:
            self.context.event(_UNOPENED, level="warning")
            log.warning("Job %d of task %s: %s.", self.claimed.job_id, self.task.name, _UNOPENED)
        result = None if value is None or self.context.stored_result else self.task.encode_result(value)
        return Finish(self.claimed.job_id, self.claimed.attempt, result)

    def _failed(self, error: BaseException) -> Finish | Abort | None:
        if self.context.parked:
            return None
        if isinstance(error, AlreadyCommittedElsewhere):
            return Finish(self.claimed.job_id, self.claimed.attempt)
        if self.context.committed:
            self.context.event(f"error after the commit: {error_text(error)}", level="error")
            return Finish(self.claimed.job_id, self.claimed.attempt)
        match error:
            case LeaseLost(job_id=self.claimed.job_id):
                # If the reaper took the lease away, this ending is refused too. Otherwise the lease expired during an
                # outage: the attempt is not used up, unless it is unknown how far it got.
                spared = self.task.options.idempotent and self.claimed.spared < self.context.settings.spared_max
                return self._abort("released", error_text(error)) if spared else None
            case Snooze():
                return self._abort("snoozed", str(error), delay=error.delay)
            case StepTooNew():
                return self._abort("snoozed", str(error), delay=_TOO_NEW_DELAY)
            case Throttled():
                wait = throttle_delay(self.claimed.spared + 1) if error.retry_after is None else error.retry_after
                return self._abort("throttled", str(error), delay=wait)
            case Fatal():
                return self._abort("error", error_text(error), fatal=True)
            case _ if (outcome := self.context.final_outcome(error)) is not None:
                return self._abort(outcome, error_text(error), fatal=True)
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


def _call(function: Callable[..., Any], context: AttemptContext, arguments: dict[str, Any]) -> Any:
    """Call a plain function, or run an async one until it ends. If an event loop runs on this thread, as in an async
    test, the async function runs on a thread of its own."""
    value = function(context, **arguments)
    if not inspect.iscoroutine(value):
        return value
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(value)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(copy_context().run, asyncio.run, value).result()
