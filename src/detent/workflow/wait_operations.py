"""Waits of a workflow: for a time, for signals, for whatever comes first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from detent.declare.workflow import Seconds, check_name, seconds_of
from detent.errors import DetentError
from detent.model.workflow_records import Arrived, NewWait, Pending, StepKind, StepRow, WaitOn
from detent.store.workflows.rules import scope_of
from detent.workflow.requests import Operation, Pause, PendingWait, Suspend, Write
from detent.workflow.run import WorkflowRun, moment_in

__all__ = ["WaitOperations"]


class WaitOperations:
    """The waits of one scope."""

    def __init__(self, run: WorkflowRun, scope: str) -> None:
        self._run = run
        self._scope = scope
        self._claimed = run.claimed

    def sleep(self, *, lasts: float | None = None, until: datetime | None = None) -> Operation[None]:
        """Wait for a time."""
        self._run.begin("sleep")
        path, row = self._run.ask(self._scope, "sleep")
        if row is None:
            self._run.check_new(self._scope, path)
        yield from self.sleep_at(path, "a time", lasts=lasts, until=until, row=row)

    def sleep_at(
        self,
        path: str,
        words: str,
        *,
        lasts: float | None = None,
        until: datetime | None = None,
        row: StepRow | None = None,
    ) -> Operation[None]:
        """Wait for a time that is recorded under this path, or was before (`row`)."""
        run, holds = self._run, None
        if row is not None:
            until, lasts = moment_in(row.value), None
            if run.now is not None and until <= run.now:
                run.note_time(until)
                return
            run.stop_replay()
        else:
            run.count_idle()
            with run.lock:
                holds = run.new(path, "sleep", value="null")
        answer = yield from self._look(
            NewWait(
                job_id=self._claimed.job_id,
                attempt=self._claimed.attempt,
                outcome=None,
                until=until,
                lasts=lasts,
                holds=holds,
                steps=run.take_pending(),
            )
        )
        if isinstance(answer, Arrived):
            run.note_time(answer.done_at)
            run.note_time(moment_in(answer.value))
        elif lasts is not None and lasts <= run.options.linger and answer.until is not None:
            yield Pause(lasts)
            run.note_time(answer.until)
        else:
            yield Suspend(PendingWait((), answer.until, words))

    def wait_for(self, signal: str, kind: Any, timeout: Seconds | None) -> Operation[Any]:
        """Wait for a signal; return its payload."""
        check_name("signal", signal)
        words = f"signal {signal}"
        lasts = None if timeout is None else seconds_of("timeout", timeout)
        self._run.begin("wait_for")
        path, _ = self._run.ask(self._scope, words)
        found, value = yield from self.wait(path, (WaitOn("signal", signal),), words, timeout=lasts)
        if found == "timeout":
            raise self._run.timed_out(words)
        return self._run.payload(value, kind, signal, path)

    def wait(
        self,
        path: str,
        on: Sequence[WaitOn],
        words: str,
        *,
        timeout: float | None = None,
        kind: StepKind = "signal",
        chooses: bool = False,
    ) -> Operation[tuple[StepKind, str | None]]:
        """Wait for the first of several things; return kind and value of the record."""
        run, scope = self._run, self._scope
        row = run.history.find(path)
        signals = [one.name for one in on if one.kind == "signal"]
        if row is not None:
            run.bind_tokens(path, signals)
            return row.kind, row.value
        # The join of a child that a scope has spawned is not loaded once the scope has ended: it may be on record.
        if scope_of(path) == scope or not run.history.is_folded(path):
            run.check_new(scope, path)
        run.bind_tokens(path, signals)
        with run.in_flight(scope, path):
            with run.lock:
                ends = run.history.find(f"{path}~deadline")
                outcome = run.new(path, kind, beside=run.is_beside(scope, path), value="null")
                holds = None
                if ends is None and timeout is not None:
                    holds = run.new(f"{path}~deadline", "deadline", value="null")
            answer = yield from self._look(
                NewWait(
                    job_id=self._claimed.job_id,
                    attempt=self._claimed.attempt,
                    outcome=outcome,
                    on=tuple(on),
                    chooses=chooses,
                    until=None if ends is None else moment_in(ends.value),
                    lasts=timeout if ends is None else None,
                    holds=holds,
                    steps=run.take_pending(),
                )
            )
            if isinstance(answer, Pending):
                yield Suspend(PendingWait(tuple(on), answer.until, words))
                raise AssertionError("a wait that is suspended does not go on")
            run.note_arrived(replace(outcome, kind=answer.kind), answer.done_at)
            return answer.kind, answer.value

    def _look(self, wait: NewWait) -> Operation[Arrived | Pending]:
        *_, answer = yield Write((wait,))
        if isinstance(answer, DetentError):
            raise answer
        assert isinstance(answer, Arrived | Pending)
        return answer
