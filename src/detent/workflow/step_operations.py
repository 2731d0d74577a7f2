"""Steps of a workflow: functions whose values are recorded once, and scopes around them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from detent.declare.probe import Probed
from detent.declare.workflow import Step, is_async
from detent.errors import DetentError, InvalidInput, InvalidPayload, is_step_note, step_note
from detent.model import json_codec
from detent.model.workflow_records import NewStep, StepKind, StepRow
from detent.workflow.requests import CallFunction, Do, Operation, Pause, ReplayEnded, Transact
from detent.workflow.run import CONTROL, WorkflowRun
from detent.workflow.wait_operations import WaitOperations

__all__ = ["AskedStep", "StepOperations", "StepUnknown"]

_PAUSE_MAX = 1.0
"""Seconds. A retry of a step that is further away parks the workflow."""
_ARGUMENTS_MAX = 1_000_000
_SCOPE: Step[Any] = Step("scope")


class StepUnknown(DetentError):
    """It is unknown whether the effect of a step has happened, and nothing can tell."""

    def __init__(self, job_id: int, path: str, why: str) -> None:
        settle = f"detent jobs settle {job_id} --step {shlex.quote(path)}"
        super().__init__(
            f"it is unknown whether step {path!r} has had its effect: {why}. Find out, and say so with "
            f"`{settle} --done` or `--not-done`"
        )


@dataclass(frozen=True, slots=True)
class AskedStep:
    """A step that the function asks for: its path and its call."""

    path: str
    step: Step[Any]
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    fingerprint: str | None


class StepOperations:
    """The steps of one scope."""

    def __init__(self, run: WorkflowRun, scope: str) -> None:
        self._run = run
        self._scope = scope
        self._context = run.context

    # -- steps -------------------------------------------------------------------------------------------------

    def step(
        self, step: Step[Any], fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Operation[Any]:
        """Call a function and record its value, unless that is on record."""
        self._run.begin("step")
        if step.timeout is not None and not is_async(fn):
            found = f"{step.timeout} for the plain function of step {step.name!r}"
            raise InvalidInput("timeout", found, "an async function")
        asked, row = self._ask(step, fn, args, kwargs)
        if row is not None:
            return self._replay(row, asked)
        with self._run.in_flight(self._scope, asked.path):
            if step.once and (probed := (yield from self._begin_once(asked))) is not None:
                return (yield from self._record(asked, probed.result, 0.0))
            begun_at = self._context.monotonic()
            call = CallFunction(asked.path, fn, args, kwargs, step.timeout)
            value = yield from self.tries(asked, call)
            return (yield from self._record(asked, value, self._context.monotonic() - begun_at))

    def transact(
        self, step: Step[Any], fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Operation[Any]:
        """Call a function with a transaction, and record its value in it."""
        self._run.begin("transact")
        if step.once or step.lazy:
            found = f"once or lazy for the transaction {step.name!r}"
            raise InvalidInput("step", found, "neither: it happens once anyway")
        asked, row = self._ask(step, fn, args, kwargs)
        if row is not None:
            return self._replay(row, asked)
        begun_at = self._context.monotonic()

        def made(value: Any) -> NewStep:
            return self._made(asked, value, "transact", self._context.monotonic() - begun_at)

        with self._run.in_flight(self._scope, asked.path):
            yield from self._run.write_pending()
            recorded = yield from self.tries(asked, Transact(asked.path, fn, args, kwargs, made))
        return self._run.adopt(asked.path, recorded.value, recorded.error, asked.step, asked.fn)

    def _ask(
        self, step: Step[Any], fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[AskedStep, StepRow | None]:
        path, row = self._run.ask(self._scope, step.name, step.key, lazy=step.lazy)
        if row is None:
            self._run.check_new(self._scope, path)
        return AskedStep(path, step, fn, args, kwargs, _fingerprint(step.name, args, kwargs)), row

    def tries(self, asked: AskedStep, request: CallFunction | Transact) -> Operation[Any]:
        """Make a request as often as the step's retry policy allows. A retry that is far away parks the workflow."""
        step, path, tries = asked.step, asked.path, 1
        waits = WaitOperations(self._run, self._scope)
        words = f"retry of step {path}"
        while (row := self._run.history.find(f"{path}~retry{tries}")) is not None:
            yield from waits.sleep_at(row.path, words, row=row)
            tries += 1
        while True:
            try:
                return (yield request)
            except Exception as error:
                if step.once and step.timeout is not None and isinstance(error, TimeoutError):
                    raise StepUnknown(
                        self._run.claimed.job_id, path, f"it did not end within {step.timeout:g} s"
                    ) from error
                delay = self._delay(asked, tries, error)
                if delay is None:
                    self._run.note_failed(path, step, error)
                    _name_step(error, path)
                    raise
            if delay <= _PAUSE_MAX:
                yield Pause(delay)
            else:
                yield from waits.sleep_at(f"{path}~retry{tries}", words, lasts=delay)
            tries += 1
            if self._run.stops_when_cancelled:
                self._context.raise_if_cancelled()

    def _delay(self, asked: AskedStep, tries: int, error: Exception) -> float | None:
        """Return the seconds after which the step is called again; None if its error goes on."""
        retry = asked.step.retry
        if retry is None or tries >= retry.attempts_max or isinstance(error, CONTROL) or not retry.covers(error):
            return None
        if (self._context.cancelled and self._run.stops_when_cancelled) or self._run.is_fatal(error):
            return None
        delay = retry.delay(tries, self._context.chance())
        self._context.event(
            f"step {asked.path} failed, try {tries} of {retry.attempts_max}; again in {delay:.1f} s: "
            f"{type(error).__name__}: {error}",
            level="warning",
        )
        return delay

    def _begin_once(self, asked: AskedStep) -> Operation[Probed | None]:
        """Record that a step is about to be called. If it may have been called before, find out what became of it."""
        store, path = self._context.store, asked.path
        with self._run.lock:
            before = self._run.history.begun(path)
            new = self._run.new(path, "call", value="null", secret=asked.step.secret, undo=asked.step.undo is not None)

        def begin() -> str | None:
            (answer,) = store.step_begin([new])
            if isinstance(answer, DetentError):
                raise answer
            return self._context.why_in_doubt(before, path)

        doubt = yield Do(begin)
        if doubt is None:
            return None
        if asked.step.probe is None:
            raise self._unknown(path, f"{doubt}, and it has no probe")
        self._context.event(f"step {path} may have been done, since {doubt}: asking its probe", level="warning")
        found = yield CallFunction(path, asked.step.probe, asked.args, asked.kwargs)
        if not isinstance(found, Probed):
            raise TypeError(f"a probe answers with Probed.done, .not_done or .cannot_tell, not with {found!r:.80}")
        if found.found == "cannot tell":
            raise self._unknown(path, found.why or "its probe cannot tell")
        self._context.event(f"the probe of step {path} says: {found.found}", level="warning")
        return found if found.found == "done" else None

    def _unknown(self, path: str, why: str) -> StepUnknown:
        return StepUnknown(self._run.claimed.job_id, path, why)

    def _made(self, asked: AskedStep, value: Any, kind: StepKind, ran_for: float) -> NewStep:
        text = self._run.encoded(value, asked.path)
        with self._run.lock:
            return self._run.new(
                asked.path,
                kind,
                fingerprint=asked.fingerprint,
                beside=self._run.is_beside(self._scope, asked.path),
                secret=asked.step.secret,
                undo=asked.step.undo is not None,
                ran_for=max(0.0, ran_for),
                value=text,
            )

    def _record(self, asked: AskedStep, value: Any, ran_for: float) -> Operation[Any]:
        new = self._made(asked, value, "call", ran_for)
        if asked.step.lazy:
            self._run.put_off(new)
            return self._run.adopt(asked.path, new.value, None, asked.step, asked.fn)
        answer = yield from self._run.record(new)
        return self._run.adopt(asked.path, answer.value, answer.error, asked.step, asked.fn)

    def _replay(self, row: StepRow, asked: AskedStep) -> Any:
        if row.fingerprint is not None and asked.fingerprint is not None and row.fingerprint != asked.fingerprint:
            self._context.event(
                f"step {row.path} is on record with other arguments; its recorded value counts",
                level="warning",
                key=f"arguments/{row.generation}/{row.path}",
            )
        return self._run.adopt(row.path, row.value, row.error, asked.step, asked.fn, row=row)

    # -- scopes ------------------------------------------------------------------------------------------------

    def begin_scope(self, name: str) -> tuple[str, StepRow | None]:
        """Return the path of a scope that the function enters, and its record if it has ended."""
        self._run.begin("scope")
        path, row = self._run.ask(self._scope, name)
        if self._run.replays_only:
            # Steps inside are needed too. Whether the scope has ended is found out at its end.
            row = None
        elif row is None:
            self._run.check_new(self._scope, path)
        elif row.undo:
            self._run.folded.add(path)
        if row is None:
            self._run.enter_scope(path)
        return path, row

    def replay_scope(self, row: StepRow, fn: Callable[..., Any]) -> Any:
        """Return the recorded value of a scope."""
        return self._run.adopt(row.path, row.value, row.error, _SCOPE, fn)

    def end_scope(self, path: str, fn: Callable[..., Any], value: Any) -> Operation[Any]:
        """Record the value of a scope."""
        self._run.begin("scope")
        if self._run.replays_only:
            if (row := self._run.history.find(path)) is None:
                raise ReplayEnded
            return self._run.adopt(path, row.value, row.error, _SCOPE, fn)
        text = self._run.encoded(value, path)
        with self._run.lock:
            beside = self._run.is_beside(self._scope, path)
            undo = any(one.startswith(f"{path}/") for one in (*self._run.undoables, *self._run.folded))
            new = self._run.new(path, "scope", beside=beside, undo=undo, value=text)
        answer = yield from self._run.record(new)
        with self._run.lock:
            self._run.history.end_scope(path)
        return self._run.adopt(path, answer.value, answer.error, _SCOPE, fn)


def _name_step(error: Exception, path: str) -> None:
    """Have the text of an error name the step that raised it: the step itself is not on record. An error object may be
    raised more than once, by different steps; the last one counts."""
    notes = getattr(error, "__notes__", ())
    error.__notes__ = [*(note for note in notes if not is_step_note(note)), step_note(path)]


def _fingerprint(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return a digest of the arguments of a step; None if they are not JSON, as a connection is not."""
    if not args and not kwargs:
        return _fingerprint_alone(name)
    try:
        text = json_codec.encode([args, kwargs], field="arguments", size_max=_ARGUMENTS_MAX)
    except InvalidPayload:
        return None
    return json_codec.fingerprint(name, text)


@lru_cache(maxsize=1024)
def _fingerprint_alone(name: str) -> str:
    """Return the digest of a step without arguments."""
    return json_codec.fingerprint(name, "[[],{}]")
