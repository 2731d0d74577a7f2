"""One run of a workflow's function: what is on record, what waits to be written, and why the attempt ends.

Operations of steps, waits and children share it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from detent.declare.signals import Fatal, JobCancelled, Snooze, Throttled
from detent.declare.workflow import Step, WorkflowOptions
from detent.errors import (
    DetentError,
    HistoryFull,
    InvalidPayload,
    LeaseLost,
    ParkSwallowed,
    StepAmbiguous,
    WaitTimeout,
    WorkflowDrift,
    WrongPlace,
)
from detent.model import json_codec
from detent.model.ids import Random
from detent.model.signal_token import SignalToken
from detent.model.workflow_records import NEVER, NewStep, Park, StepKind, StepRecorded, StepRow
from detent.store.group_writer import new_lock
from detent.store.workflows.rules import TIME_KINDS, scope_of
from detent.workflow.branch import Branch, current_branch, inside_step, set_branch
from detent.workflow.history import StepHistory
from detent.workflow.requests import Operation, ParkAttempt, PendingWait, ReplayEnded, Write
from detent.workflow.run_context import RunContext
from detent.workflow.text_stream import StreamBudget
from detent.workflow.values import decode_value, encode_error, raise_recorded, return_type

__all__ = ["CONTROL", "Undoable", "WorkflowRun", "moment_in"]

CONTROL = (Fatal, Snooze, Throttled, JobCancelled, LeaseLost)
"""Errors by which a function decides what happens to its job: they are no outcome of a step."""
_IDLE_MAX = 100
"""How many waits in a row a workflow may make without recording anything but times."""
_AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)
_FATAL = (HistoryFull, ParkSwallowed, StepAmbiguous, WorkflowDrift)


class Undoable(NamedTuple):
    """A step on record that can be undone."""

    path: str
    step: Step[Any]
    value: Any


class WorkflowRun:
    """What the operations of one attempt share. The lock guards what several threads of one function may change; it is
    never held during a request."""

    def __init__(self, context: RunContext, options: WorkflowOptions) -> None:
        self.context = context
        self.options = options
        self.claimed = context.claimed
        self.history = StepHistory(self.claimed.job_id, options.version)
        self.lock = new_lock()
        self.now: datetime | None = None
        self.cause: str | None = None
        """Why its steps are being undone; None if they are not."""
        self.replays_only = False
        """Whether the function may only come to steps on record, so that their undo functions are known."""
        self.undoables: dict[str, Undoable] = {}
        self.folded: set[str] = set()
        """Scopes on record with steps that can be undone. Those steps are not in `undoables`."""
        self.stops_when_cancelled = True
        self.randoms: dict[str, Random] = {}
        """The chances of its scopes, by their seeds."""
        self.parking: list[PendingWait] = []
        """The waits for which the attempt ends; empty while it goes on."""
        self.continues_with: str | None = None
        """The arguments of the next generation, if this one has ended."""
        self.fatal: BaseException | None = None
        self.streams = StreamBudget(context.monotonic)
        self._tokens: dict[str, list[str]] = {}
        """Tokens that count for the next wait for a signal, by signal."""
        self._branches: dict[str, Branch] = {}
        self._pending: list[NewStep] = []
        self._failed: dict[str, tuple[Branch, NewStep]] = {}
        self.idle_waits = 0
        self.news: str | None = None
        """The last step other than a time that this attempt has written: proof of its progress."""

    # -- beginning of an operation -----------------------------------------------------------------------------

    def begin(self, word: str) -> None:
        """Refuse an operation in the wrong place, and note which errors the function has caught."""
        if (path := inside_step.get()) is not None:
            raise WrongPlace(
                f"ctx.{word}", f"inside step {path!r}", "call it in the workflow's function, not in a step"
            )
        if self.parking:
            self.stop_replay()
            raise ParkSwallowed(self.claimed.job_id, self.parking[0].words)
        branch = current_branch(self.context.runner())
        if self._failed:
            self._note_caught(branch)
        if self.stops_when_cancelled:
            self.context.raise_if_cancelled()

    def _note_caught(self, branch: Branch) -> None:
        """The function goes on although these steps have failed, so it has caught their errors."""
        with self.lock:
            caught = [path for path, (where, _) in self._failed.items() if where[: len(branch)] == branch]
            for path in caught:
                self._pending.append(replace(self._failed.pop(path)[1], seq=self.history.next_seq()))

    def ask(
        self, scope: str, name: str, key: str | int | None = None, *, lazy: bool = False
    ) -> tuple[str, StepRow | None]:
        with self.lock:
            path = self.history.identify(scope, name, key)
            return path, self.history.find(path, lazy=lazy)

    def check_new(self, scope: str, path: str) -> None:
        self.stop_replay()
        with self.lock:
            drift = self.history.is_next(scope, path)
        if drift is None:
            return
        if self.options.drift == "refuse":
            raise drift
        self.context.event(str(drift), level="warning", key=f"drift/{self.history.generation}/{path}")

    def replay(self) -> None:
        """Let the function come only to steps on record, so that their undo functions are known."""
        self.replays_only = True
        self.stops_when_cancelled = False
        self.history.is_limited = False

    def stop_replay(self) -> None:
        """End the function if it may only come to steps on record."""
        if self.replays_only:
            raise ReplayEnded

    def new(self, path: str, kind: StepKind, **more: Any) -> NewStep:
        """Return a step to record. Its scope is that of its path, wherever the function records it: a join names the
        step that spawned the child, and a token may count for a wait in another scope."""
        history = self.history
        return NewStep(
            job_id=self.claimed.job_id,
            attempt=self.claimed.attempt,
            version=history.version,
            generation=history.generation,
            path=path,
            seq=history.next_seq(),
            kind=kind,
            scope=scope_of(path),
            **more,
        )

    def take_pending(self) -> tuple[NewStep, ...]:
        with self.lock:
            pending, self._pending = self._pending, []
        for step in pending:
            self._note_news(step)
        return tuple(pending)

    def _note_news(self, step: NewStep) -> None:
        if step.kind not in TIME_KINDS:
            self.news = step.path

    def record(self, new: NewStep) -> Operation[StepRecorded]:
        """Write a step, and return what is on record then."""
        *_, answer = yield Write((*self.take_pending(), new))
        if isinstance(answer, DetentError):
            raise answer
        assert isinstance(answer, StepRecorded)
        self.note_recorded(new, answer.done_at)
        return answer

    def put_off(self, new: NewStep) -> None:
        """Write a step together with the next one."""
        with self.lock:
            self._pending.append(new)
            self.history.recorded(new, None)

    def write_pending(self) -> Operation[None]:
        """Write what was put off."""
        pending = self.take_pending()
        if pending:
            for answer in (yield Write(pending)):
                if isinstance(answer, DetentError):
                    raise answer

    def is_beside(self, scope: str, path: str) -> bool:
        """Whether the order of this step among those of its scope says nothing: it belongs to a branch that the scope
        has started, or others of the scope are in flight."""
        return current_branch(self.context.runner()) != self._branches.get(scope) or self.history.is_beside(scope, path)

    def start(self) -> None:
        """Note that the function starts here."""
        set_branch(self.context.runner())
        self.enter_scope("")

    def enter_scope(self, path: str) -> None:
        """Note which branch of the function runs a scope; the function itself is the scope without a name."""
        self._branches[path] = current_branch(self.context.runner())

    @contextmanager
    def in_flight(self, scope: str, path: str) -> Iterator[None]:
        """Note that a step or wait is in flight inside the block."""
        with self.lock:
            self.history.enter(scope, path)
        try:
            yield
        finally:
            with self.lock:
                self.history.leave(scope, path)

    def encoded(self, value: Any, path: str) -> str:
        """Return the value of a step as JSON. One that cannot be recorded stops the workflow."""
        settings = self.context.settings
        field = f"value of step {path!r}"
        try:
            return json_codec.encode(value, field=field, size_max=settings.step_max, depth_max=settings.depth_max)
        except InvalidPayload as error:
            error.add_note("Store large values elsewhere, and return the key under which they are.")
            self.fatal = error
            raise

    def note_failed(self, path: str, step: Step[Any], error: Exception) -> None:
        """Keep an error, in case the function catches it and goes on: then it is what the step came to."""
        if isinstance(error, CONTROL) or self.is_fatal(error):
            return
        with self.lock:
            failed = self.new(path, "call", error=encode_error(error), secret=step.secret)
            self._failed[path] = (current_branch(self.context.runner()), failed)

    def adopt(
        self,
        path: str,
        value: str | None,
        error: str | None,
        step: Step[Any],
        fn: Callable[..., Any],
        *,
        row: StepRow | None = None,
    ) -> Any:
        """Return what is on record as the function sees it. What a fork has copied (`row`) is not for it to undo."""
        if error is not None:
            raise_recorded(error)
        found = self.decoded(value, return_type(fn), path, step.adapt)
        if step.undo is not None and (row is None or row.undo or row.attempt > 0):
            self.undoables[path] = Undoable(path, step, found)
        return found

    def decoded(self, value: str | None, kind: Any, path: str, adapt: Callable[[Any], Any] | None = None) -> Any:
        """Return a recorded value as `kind`. One that does not fit stops the workflow until its code is mended."""
        try:
            return decode_value(value, kind, path, adapt)
        except InvalidPayload as error:
            self.fatal = error
            raise

    def payload(self, text: str | None, kind: Any, signal: str, path: str) -> Any:
        """Return the payload of a signal that the step `path` has taken. If it does not fit, null included, that is
        raised here in every attempt. If the function does not catch it, the workflow stops until a person has sent
        another signal, or mended the code."""
        try:
            return json_codec.decode(text or "null", kind, field=f"payload of signal {signal!r}")
        except InvalidPayload as error:
            rewind = f"detent workflows rewind {self.claimed.job_id} --to {shlex.quote(path)}"
            error.add_note(
                f"Send the signal with another payload, and then: {rewind}. Or mend the code, and retry the job."
            )
            self.fatal = error
            raise

    def begin_spawn(self, scope: str, name: str) -> tuple[str, StepRow | None, NewStep | None]:
        """Return the path of a step that spawns children, and its record, or the step to record."""
        self.begin("spawn")
        path, row = self.ask(scope, name)
        if row is not None:
            return path, row, None
        self.check_new(scope, path)
        with self.lock:
            return path, None, self.new(path, "spawn", beside=self.is_beside(scope, path), value="null")

    # -- tokens ------------------------------------------------------------------------------------------------

    def new_token(self, scope: str, signal: str, next_wait_only: bool) -> SignalToken:
        """Return the token that the function asks for now."""
        self.begin("token")
        with self.lock:
            path = self.history.identify_token(scope, signal)
            if next_wait_only:
                self._tokens.setdefault(signal, []).append(path)
        job_id = self.context.job_id
        identity = self.context.store.identity_of(job_id)
        return SignalToken.of(job_id, self.history.generation, signal, path, next_wait_only, identity)

    def bind_tokens(self, path: str, signals: Iterable[str]) -> None:
        """Record that the tokens which count for the next wait for these signals count for this one. It is written
        together with the first look at the wait."""
        for signal in signals:
            with self.lock:
                waiting = self._tokens.pop(signal, ())
            for token in waiting:
                with self.lock:
                    known = self.history.find(token)
                    new = None if known else self.new(token, "token", fingerprint=path, value="null")
                if new is not None:
                    self.put_off(new)

    def count_idle(self) -> None:
        """Count waits without a new record; refuse to go on if there are too many."""
        self.idle_waits += 1
        if self.history.parks + self.idle_waits > _IDLE_MAX:
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
        self.begin("finish")
        yield from self.write_pending()
        if left := self.history.leftover():
            self.context.event(
                f"{len(left)} recorded steps were not asked for by this code, the first is {left[0]}",
                level="warning",
                key=f"leftover/{self.history.generation}",
            )

    def continue_as_new(self, payload: dict[str, Any]) -> Operation[None]:
        """End this generation: the next one begins with these arguments and nothing on record."""
        self.begin("continue_as_new")
        task = self.context.find_task(self.claimed.task)
        self.continues_with = task.call(**payload).payload
        yield from self.write_pending()
        raise self.suspend(PendingWait((), None, "its next generation"))

    def time(self) -> datetime:
        """Return the time of the last recorded step that the function has seen, or the end of its last sleep. Before
        the first one, the time is recorded together with it."""
        if self.history.last_at is None:
            with self.lock:
                row = self.history.find("now~")
                if row is None:
                    now = self.context.now_here()
                    new = self.new("now~", "call", value=json_codec.encode(now, field="now", size_max=100))
                    self._pending.append(new)
                    self.history.recorded(new, now)
                    return now
            self.history.last_at = moment_in(row.value)
        return self.history.last_at

    def note_time(self, at: datetime) -> None:
        """Note that it is that late at least: a sleep has ended."""
        with self.lock:
            self.history.note_time(at)

    def note_arrived(self, step: NewStep, done_at: datetime) -> None:
        """Note that a wait has ended. A time-out is no news."""
        with self.lock:
            self.history.recorded(step, done_at)
        self._note_news(step)
        if step.kind == "timeout":
            self.count_idle()
        else:
            self.idle_waits = 0

    def note_recorded(self, step: NewStep, done_at: datetime | None) -> None:
        """Note that a step was recorded in a transaction of its own."""
        self.idle_waits = 0
        self._note_news(step)
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
            undoes=self.can_undo and self.cause is None and self.options.undo == "on_failure",
            news=self.news,
        )

    @property
    def can_undo(self) -> bool:
        """Whether steps on record have an undo."""
        return bool(self.undoables) or self.history.has_undo

    def suspend(self, wait: PendingWait) -> ParkAttempt:
        """Note that the attempt ends because of this wait; return what to raise."""
        with self.lock:
            self.parking.append(wait)
        return ParkAttempt()

    def suspend_before_undo(self) -> ParkAttempt:
        """Note that the attempt ends now, and that the next one undoes the steps; return what to raise."""
        self.parking.clear()
        return self.suspend(PendingWait((), _AT_ONCE, "the undo of its steps"))

    def is_fatal(self, error: BaseException) -> bool:
        """Whether no further attempt can mend this error without a change of the code."""
        return error is self.fatal or isinstance(error, _FATAL)


def moment_in(value: str | None) -> datetime:
    """Return the time that a step holds."""
    return NEVER if value is None else json_codec.decode(value, datetime)
