"""What each call of a workflow's function does: steps, waits and the end, as operations that a driver runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from detent.declare.probe import Probed
from detent.declare.signals import Fatal, JobCancelled, Snooze, Throttled
from detent.declare.workflow import Seconds, Step, WorkflowOptions, check_name, is_async, seconds_of
from detent.errors import (
    DetentError,
    HistoryFull,
    InvalidInput,
    InvalidPayload,
    LeaseLost,
    ParkSwallowed,
    StepAmbiguous,
    WaitTimeout,
    WorkflowDrift,
    WrongPlace,
)
from detent.model import json_codec
from detent.model.workflow_records import NEVER, Arrived, NewStep, NewWait, Park, Pending, StepKind, StepRow, WaitOn
from detent.worker.attempt.workflow.branch import Branch, current_branch, inside_step
from detent.worker.attempt.workflow.history import StepHistory
from detent.worker.attempt.workflow.requests import (
    CallFunction,
    Do,
    Operation,
    ParkAttempt,
    Pause,
    PendingWait,
    Suspend,
    Transact,
    Write,
)
from detent.worker.attempt.workflow.values import decode_value, encode_error, raise_recorded, return_type

if TYPE_CHECKING:
    from detent.worker.attempt.workflow.base_context import BaseWorkflowContext

__all__ = ["Operations", "StepUnknown"]

_PAUSE_MAX = 1.0
"""Seconds. A retry of a step that is further away parks the workflow."""
_IDLE_MAX = 100
"""How many waits in a row a workflow may make without recording anything but times."""
_CONTROL = (Fatal, Snooze, Throttled, JobCancelled, LeaseLost)
_FATAL = (HistoryFull, ParkSwallowed, StepAmbiguous, WorkflowDrift)


class StepUnknown(DetentError):
    """It is unknown whether the effect of a step has happened, and nothing can tell."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"it is unknown whether step {path!r} has had its effect: {why}")


class Operations:
    """The operations of one attempt at a workflow, and what they share. The lock guards what several threads of one
    function may change; it is never held during a request."""

    def __init__(self, context: BaseWorkflowContext, options: WorkflowOptions) -> None:
        self.context = context
        self.options = options
        self.claimed = context.claimed
        self.history = StepHistory(self.claimed.job_id, options.version)
        self.lock = threading.Lock()
        self.now: datetime | None = None
        self.depth = 0
        self.parking: list[PendingWait] = []
        """The waits for which the attempt ends; empty while it goes on."""
        self.continues_with: str | None = None
        """The arguments of the next generation, if this one has ended."""
        self.fatal: BaseException | None = None
        self._pending: list[NewStep] = []
        self._failed: dict[str, tuple[Branch, NewStep]] = {}
        self._idle = 0

    # -- beginning of an operation -----------------------------------------------------------------------------

    def _begin(self, word: str) -> None:
        """Refuse an operation in the wrong place, and note which errors the function has caught."""
        if (path := inside_step.get()) is not None:
            raise WrongPlace(
                f"ctx.{word}", f"inside step {path!r}", "call it in the workflow's function, not in a step"
            )
        if self.parking:
            raise ParkSwallowed(self.claimed.job_id, self.parking[0].words)
        branch = current_branch(self.context.runner())
        with self.lock:
            caught = [path for path, (where, _) in self._failed.items() if where[: len(branch)] == branch]
            for path in caught:
                self._pending.append(replace(self._failed.pop(path)[1], seq=self.history.next_seq()))
        self.context.raise_if_cancelled()

    def _ask(self, scope: str, name: str, key: str | int | None = None) -> tuple[str, StepRow | None]:
        with self.lock:
            path = self.history.identify(scope, name, key)
            return path, self.history.find(path)

    def _check_new(self, scope: str, path: str) -> None:
        with self.lock:
            drift = self.history.is_next(scope, path)
        if drift is None:
            return
        if self.options.drift == "refuse":
            raise drift
        self.context.event(str(drift), level="warning", key=f"drift/{self.history.generation}/{path}")

    def _new(self, path: str, kind: StepKind, scope: str, **more: Any) -> NewStep:
        history = self.history
        return NewStep(
            job_id=self.claimed.job_id,
            attempt=self.claimed.attempt,
            version=history.version,
            generation=history.generation,
            path=path,
            seq=history.next_seq(),
            kind=kind,
            scope=scope,
            **more,
        )

    def _take_pending(self) -> tuple[NewStep, ...]:
        with self.lock:
            pending, self._pending = self._pending, []
        return tuple(pending)

    # -- steps -------------------------------------------------------------------------------------------------

    def step(
        self, scope: str, step: Step[Any], fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Operation[Any]:
        """Call a function and record its value, unless that is on record."""
        self._begin("step")
        if step.timeout is not None and not is_async(fn):
            raise InvalidInput(
                "timeout", f"{step.timeout} for the plain function of step {step.name!r}", "an async function"
            )
        path, row = self._ask(scope, step.name, step.key)
        fingerprint = _fingerprint(step.name, args, kwargs)
        if row is not None:
            return self._replay(row, step, fn, fingerprint)
        self._check_new(scope, path)
        with self.lock:
            self.history.enter(scope, path)
        try:
            if step.once and (found := (yield from self._begin_once(scope, path, step, args, kwargs))) is not None:
                return (yield from self._record(scope, path, step, fn, fingerprint, found.result, "call", 0.0))
            begun_at = self.context.monotonic()
            value = yield from self._call(scope, path, step, fn, args, kwargs)
            ran_for = self.context.monotonic() - begun_at
            return (yield from self._record(scope, path, step, fn, fingerprint, value, "call", ran_for))
        finally:
            with self.lock:
                self.history.leave(scope, path)

    def transact(
        self, scope: str, step: Step[Any], fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Operation[Any]:
        """Call a function with a transaction, and record its value in it."""
        self._begin("transact")
        if step.once or step.lazy:
            raise InvalidInput(
                "step", f"once or lazy for the transaction {step.name!r}", "neither: it happens once anyway"
            )
        path, row = self._ask(scope, step.name, step.key)
        fingerprint = _fingerprint(step.name, args, kwargs)
        if row is not None:
            return self._replay(row, step, fn, fingerprint)
        self._check_new(scope, path)
        begun_at = self.context.monotonic()

        def made(value: Any) -> NewStep:
            ran_for = self.context.monotonic() - begun_at
            return self._made(scope, path, step, fingerprint, value, "transact", ran_for)

        with self.lock:
            self.history.enter(scope, path)
        try:
            pending = self._take_pending()
            if pending:
                yield Write(pending)
            recorded = yield from self._tries(scope, path, step, lambda: Transact(path, fn, args, kwargs, made))
        finally:
            with self.lock:
                self.history.leave(scope, path)
        return self._adopt(recorded.kind, path, recorded.value, recorded.error, step, fn)

    def _call(
        self,
        scope: str,
        path: str,
        step: Step[Any],
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Operation[Any]:
        return (yield from self._tries(scope, path, step, lambda: CallFunction(path, fn, args, kwargs, step.timeout)))

    def _tries(
        self, scope: str, path: str, step: Step[Any], request: Callable[[], CallFunction | Transact]
    ) -> Operation[Any]:
        """Make a request as often as the step's retry policy allows. A retry that is far away parks the workflow."""
        tries = 1
        while (row := self.history.find(f"{path}~retry{tries}")) is not None:
            yield from self._sleep(scope, row.path, f"retry of step {path}", row=row)
            tries += 1
        while True:
            try:
                return (yield request())
            except Exception as error:
                if step.once and step.timeout is not None and isinstance(error, TimeoutError):
                    raise StepUnknown(path, f"it did not end within {step.timeout:g} s") from error
                again = step.retry is not None and not isinstance(error, _CONTROL) and step.retry.covers(error)
                if not again or step.retry is None or tries >= step.retry.attempts_max or self.context.cancelled:
                    self._note_failed(scope, path, step, error)
                    raise
                delay = step.retry.delay(tries, self.context.chance())
                self.context.event(
                    f"step {path} failed, try {tries} of {step.retry.attempts_max}; again in {delay:.1f} s: "
                    f"{type(error).__name__}: {error}",
                    level="warning",
                )
            if delay <= _PAUSE_MAX:
                yield Pause(delay)
            else:
                yield from self._sleep(scope, f"{path}~retry{tries}", f"retry of step {path}", lasts=delay)
            tries += 1
            self.context.raise_if_cancelled()

    def _note_failed(self, scope: str, path: str, step: Step[Any], error: Exception) -> None:
        """Keep an error, in case the function catches it and goes on: then it is what the step came to."""
        if isinstance(error, _CONTROL) or self.is_fatal(error):
            return
        with self.lock:
            failed = self._new(path, "call", scope, error=encode_error(error), secret=step.secret)
            self._failed[path] = (current_branch(self.context.runner()), failed)

    def _begin_once(
        self, scope: str, path: str, step: Step[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Operation[Probed | None]:
        """Record that a step is about to be called. If an earlier attempt has begun it, find out what became of it."""
        store, attempt = self.context.store, self.claimed.attempt
        before = self.history.begun(path)
        with self.lock:
            new = replace(self._new(path, "call", scope), value="null")
        (answer,) = yield Do(lambda: store.step_begin([new]))
        if isinstance(answer, DetentError):
            raise answer
        if (
            before is None
            or before.first >= attempt
            or not (yield Do(lambda: self.context.may_have_done(before.first)))
        ):
            return None
        if step.probe is None:
            raise StepUnknown(path, f"attempt {before.first} has begun it, and it has no probe")
        self.context.event(f"attempt {before.first} may have done step {path}: asking its probe", level="warning")
        found = yield CallFunction(path, step.probe, args, kwargs)
        if not isinstance(found, Probed):
            raise TypeError(f"a probe answers with Probed.done, .not_done or .cannot_tell, not with {found!r:.80}")
        if found.found == "cannot tell":
            raise StepUnknown(path, found.why or "its probe cannot tell")
        self.context.event(f"the probe of step {path} says: {found.found}", level="warning")
        return found if found.found == "done" else None

    def _made(
        self, scope: str, path: str, step: Step[Any], fingerprint: str | None, value: Any, kind: StepKind, ran: float
    ) -> NewStep:
        settings = self.context.settings
        try:
            text = json_codec.encode(
                value, field=f"value of step {path!r}", size_max=settings.step_max, depth_max=settings.depth_max
            )
        except InvalidPayload as error:
            self.fatal = error
            error.add_note("Store large values elsewhere, and return the key under which they are.")
            raise
        with self.lock:
            return self._new(
                path,
                kind,
                scope,
                fingerprint=fingerprint,
                beside=self.history.is_beside(scope, path),
                secret=step.secret,
                undo=step.undo is not None,
                ran_for=max(0.0, ran),
                value=text,
            )

    def _record(
        self,
        scope: str,
        path: str,
        step: Step[Any],
        fn: Callable[..., Any],
        fingerprint: str | None,
        value: Any,
        kind: StepKind,
        ran_for: float,
    ) -> Operation[Any]:
        new = self._made(scope, path, step, fingerprint, value, kind, ran_for)
        if step.lazy:
            with self.lock:
                self._pending.append(new)
                self.history.recorded(new, self.context.lazy_time())
            return self._adopt(kind, path, new.value, None, step, fn)
        *_, answer = yield Write((*self._take_pending(), new))
        if isinstance(answer, DetentError):
            raise answer
        self._idle = 0
        with self.lock:
            self.history.recorded(new, answer.done_at)
        return self._adopt(answer.kind, path, answer.value, answer.error, step, fn)

    def _replay(self, row: StepRow, step: Step[Any], fn: Callable[..., Any], fingerprint: str | None) -> Any:
        if row.fingerprint is not None and fingerprint is not None and row.fingerprint != fingerprint:
            self.context.event(
                f"step {row.path} is on record with other arguments; its recorded value counts",
                level="warning",
                key=f"arguments/{row.generation}/{row.path}",
            )
        return self._adopt(row.kind, row.path, row.value, row.error, step, fn)

    def _adopt(
        self, kind: StepKind, path: str, value: str | None, error: str | None, step: Step[Any], fn: Callable[..., Any]
    ) -> Any:
        """Return what is on record as the function sees it."""
        if error is not None:
            raise_recorded(error)
        return self.decoded(value, return_type(fn), path, step.adapt)

    def decoded(self, value: str | None, kind: Any, path: str, adapt: Callable[[Any], Any] | None = None) -> Any:
        """Return a recorded value as `kind`. One that does not fit stops the workflow until its code is mended."""
        try:
            return decode_value(value, kind, path, adapt)
        except InvalidPayload as error:
            self.fatal = error
            raise

    def begin_spawn(self, scope: str, name: str) -> tuple[str, StepRow | None, NewStep | None]:
        """Return the path of a step that spawns children, and its record, or the step to record."""
        self._begin("spawn")
        path, row = self._ask(scope, name)
        if row is not None:
            return path, row, None
        self._check_new(scope, path)
        with self.lock:
            return path, None, self._new(path, "spawn", scope, beside=self.history.is_beside(scope, path), value="null")

    # -- scopes ------------------------------------------------------------------------------------------------

    def find_scope(self, scope: str, name: str) -> tuple[str, StepRow | None]:
        """Return the path of a scope that the function enters, and its record if it has ended."""
        self._begin("scope")
        path, row = self._ask(scope, name)
        if row is None:
            self._check_new(scope, path)
            with self.lock:
                self.history.enter(scope, path)
        return path, row

    def replay_scope(self, row: StepRow, fn: Callable[..., Any]) -> Any:
        """Return the recorded value of a scope."""
        return self._adopt(row.kind, row.path, row.value, row.error, Step("scope"), fn)

    def end_scope(self, scope: str, path: str, fn: Callable[..., Any], value: Any) -> Operation[Any]:
        """Record the value of a scope."""
        self._begin("scope")
        step: Step[Any] = Step("scope")
        new = self._made(scope, path, step, None, value, "scope", 0.0)
        *_, answer = yield Write((*self._take_pending(), new))
        if isinstance(answer, DetentError):
            raise answer
        with self.lock:
            self.history.recorded(new, answer.done_at)
            self.history.end_scope(path)
        return self._adopt(answer.kind, path, answer.value, answer.error, step, fn)

    def leave_scope(self, scope: str, path: str) -> None:
        """Note that the function has left a scope, with or without a value."""
        with self.lock:
            self.history.leave(scope, path)

    # -- waits -------------------------------------------------------------------------------------------------

    def sleep(self, scope: str, *, lasts: float | None = None, until: datetime | None = None) -> Operation[None]:
        """Wait for a time."""
        self._begin("sleep")
        path, row = self._ask(scope, "sleep")
        if row is None:
            self._check_new(scope, path)
        yield from self._sleep(scope, path, "a time", lasts=lasts, until=until, row=row)

    def _sleep(
        self,
        scope: str,
        path: str,
        words: str,
        *,
        lasts: float | None = None,
        until: datetime | None = None,
        row: StepRow | None = None,
    ) -> Operation[None]:
        holds = None
        if row is not None:
            until, lasts = _moment(row.value), None
            if self.now is not None and until <= self.now:
                return
        else:
            self._count_idle()
            with self.lock:
                holds = self._new(path, "sleep", scope, value="null")
        wait = NewWait(
            job_id=self.claimed.job_id,
            attempt=self.claimed.attempt,
            outcome=None,
            until=until,
            lasts=lasts,
            holds=holds,
            steps=self._take_pending(),
        )
        answer = yield from self._look(wait)
        if isinstance(answer, Pending):
            if lasts is not None and lasts <= self.options.linger:
                yield Pause(lasts)
                return
            yield Suspend(PendingWait((), answer.until, words))

    def wait(
        self,
        scope: str,
        name: str,
        on: Sequence[WaitOn],
        words: str,
        *,
        timeout: float | None = None,
        path: str | None = None,
        kind: StepKind = "signal",
        chooses: bool = False,
        word: str = "wait_for",
    ) -> Operation[tuple[StepKind, str | None]]:
        """Wait for the first of several things; return kind and value of the record."""
        self._begin(word)
        if path is None:
            path, row = self._ask(scope, name)
        else:
            row = self.history.find(path)
        if row is not None:
            return row.kind, row.value
        self._check_new(scope, path)
        with self.lock:
            ends = self.history.find(f"{path}~deadline")
            outcome = self._new(path, kind, scope, beside=self.history.is_beside(scope, path), value="null")
            holds = None
            if ends is None and timeout is not None:
                holds = self._new(f"{path}~deadline", "deadline", scope, value="null")
            self.history.enter(scope, path)
        try:
            wait = NewWait(
                job_id=self.claimed.job_id,
                attempt=self.claimed.attempt,
                outcome=outcome,
                on=tuple(on),
                chooses=chooses,
                until=None if ends is None else _moment(ends.value),
                lasts=timeout if ends is None else None,
                holds=holds,
                steps=self._take_pending(),
            )
            answer = yield from self._look(wait)
            if isinstance(answer, Pending):
                yield Suspend(PendingWait(tuple(on), answer.until, words))
                raise AssertionError("a wait that is suspended does not go on")
            with self.lock:
                self.history.recorded(replace(outcome, kind=answer.kind), answer.done_at)
            if answer.kind == "timeout":
                self._count_idle()
            else:
                self._idle = 0
            return answer.kind, answer.value
        finally:
            with self.lock:
                self.history.leave(scope, path)

    def wait_for(self, scope: str, signal: str, kind: Any, timeout: Seconds | None) -> Operation[Any]:
        """Wait for a signal; return its payload."""
        check_name("signal", signal)
        words = f"signal {signal}"
        lasts = None if timeout is None else seconds_of("timeout", timeout)
        found, value = yield from self.wait(scope, words, (WaitOn("signal", signal),), words, timeout=lasts)
        if found == "timeout":
            raise self.timed_out(words)
        return self.decoded(value, kind, words)

    def _look(self, wait: NewWait) -> Operation[Arrived | Pending]:
        *_, answer = yield Write((wait,))
        if isinstance(answer, DetentError):
            raise answer
        assert isinstance(answer, Arrived | Pending)
        return answer

    def _count_idle(self) -> None:
        """Count waits without a new record; refuse to go on if there are too many."""
        self._idle += 1
        if self.history.parks + self._idle > _IDLE_MAX:
            self.fatal = Fatal(
                f"spinning: it has waited {_IDLE_MAX} times in a row and recorded nothing but the times; "
                f"record what it waits for in a step, or use a schedule"
            )
            raise self.fatal

    def timed_out(self, words: str) -> WaitTimeout:
        """Return the error of a wait whose time is over."""
        return WaitTimeout(self.claimed.job_id, words)

    # -- end ---------------------------------------------------------------------------------------------------

    def finish(self) -> Operation[None]:
        """Write what is left before the function's value counts."""
        self._begin("finish")
        pending = self._take_pending()
        if pending:
            for answer in (yield Write(pending)):
                if isinstance(answer, DetentError):
                    raise answer
        if left := self.history.leftover():
            self.context.event(
                f"{len(left)} recorded steps were not asked for by this code, the first is {left[0]}",
                level="warning",
                key=f"leftover/{self.history.generation}",
            )

    def continue_as_new(self, payload: dict[str, Any]) -> Operation[None]:
        """End this generation: the next one begins with these arguments and nothing on record."""
        self._begin("continue_as_new")
        task = self.context.find_task(self.claimed.task)
        self.continues_with = task.call(**payload).payload
        pending = self._take_pending()
        if pending:
            yield Write(pending)
        raise self.suspend(PendingWait((), None, "its next generation"))

    def time(self) -> datetime:
        """Return the time of the last recorded step that the function has seen. Before the first one, the time is
        recorded together with it."""
        if self.history.last_at is None:
            with self.lock:
                row = self.history.find("now~")
                if row is None:
                    now = self.context.clock.now()
                    new = self._new("now~", "call", "", value=json_codec.encode(now, field="now", size_max=100))
                    self._pending.append(new)
                    self.history.recorded(new, now)
                    return now
            self.history.last_at = _moment(row.value)
        return self.history.last_at

    def note_recorded(self, step: NewStep, done_at: datetime) -> None:
        """Note that a step was recorded in a transaction of its own."""
        self._idle = 0
        with self.lock:
            self.history.recorded(step, done_at)

    def park(self, begun_after: float | None) -> Park:
        """Return the end of this attempt: everything that it waits for."""
        until = min((one.until for one in self.parking if one.until is not None), default=None)
        return Park(
            job_id=self.claimed.job_id,
            attempt=self.claimed.attempt,
            version=self.history.version,
            generation=self.history.generation,
            on=tuple(dict.fromkeys(on for one in self.parking for on in one.on)),
            until=until,
            parked_for=", ".join(dict.fromkeys(one.words for one in self.parking))[:500],
            begun_after=begun_after,
        )

    def suspend(self, wait: PendingWait) -> ParkAttempt:
        """Note that the attempt ends because of this wait; return what to raise."""
        with self.lock:
            self.parking.append(wait)
        return ParkAttempt()

    def is_fatal(self, error: BaseException) -> bool:
        """Whether no further attempt can mend this error without a change of the code."""
        return error is self.fatal or isinstance(error, _FATAL)


def _fingerprint(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return a digest of the arguments of a step; None if they are not JSON, as a connection is not."""
    try:
        text = json_codec.encode([args, kwargs], field="arguments", size_max=1_000_000)
    except InvalidPayload:
        return None
    return json_codec.fingerprint(name, text)


def _moment(value: str | None) -> datetime:
    """Return the time that a step holds."""
    return NEVER if value is None else json_codec.decode(value, datetime)
