"""Undoing the steps of a workflow: in reverse order of their records, each undo recorded as a step of its own."""

from __future__ import annotations

from typing import Any

from detent.declare.signals import Snooze, Throttled
from detent.declare.workflow import Step
from detent.errors import LeaseLost, UndoFailed
from detent.errors.database import OUTAGES
from detent.model.backoff import Retry
from detent.workflow.requests import CallFunction, Operation
from detent.workflow.run import Undoable, WorkflowRun
from detent.workflow.step_operations import AskedStep, StepOperations

__all__ = ["UNDONE", "undo_steps"]

UNDONE = "~undone"
"""The path of the record that says that all steps are undone."""
_RETRY = Retry(3)
_GO_ON = (LeaseLost, Snooze, Throttled, *OUTAGES)


def undo_steps(run: WorkflowRun) -> Operation[int]:
    """Undo what the function has recorded, apart from what is undone already; return how many steps were undone by
    this attempt. `UndoFailed` stops the chain: a retry of the job goes on with the same step."""
    run.replays_only = False
    steps, undone = StepOperations(run, ""), 0
    for one in sorted(run.undoables.values(), key=lambda one: run.history.seq_of(one.path), reverse=True):
        path = f"{one.path}~undo"
        if run.history.find(path) is not None:
            continue
        try:
            yield from steps.tries(*_call(path, one))
        except _GO_ON:
            raise
        except Exception as error:
            run.fatal = UndoFailed(run.claimed.job_id, one.path, f"{type(error).__name__}: {error}")
            raise run.fatal from error
        with run.lock:
            new = run.new(path, "undo", "", value="null")
        yield from run.record(new)
        undone += 1
    if run.history.find(UNDONE) is None:
        with run.lock:
            new = run.new(UNDONE, "undo", "", value="null")
        yield from run.record(new)
    return undone


def _call(path: str, one: Undoable) -> tuple[AskedStep, CallFunction]:
    assert one.step.undo is not None
    step: Step[Any] = Step(one.step.name, retry=one.step.retry or _RETRY)
    asked = AskedStep(path, step, one.step.undo, (one.value,), {}, None)
    return asked, CallFunction(path, one.step.undo, (one.value,), {})
