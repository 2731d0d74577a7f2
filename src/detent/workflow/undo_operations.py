"""Undoing the steps of a workflow: in reverse order of their records, each undo recorded as a step of its own."""

from __future__ import annotations

from typing import Any

from detent.declare.signals import JobCancelled, Snooze, Throttled
from detent.declare.workflow import Step
from detent.errors import LeaseLost, UndoFailed
from detent.errors.database import OUTAGES
from detent.model.backoff import Retry
from detent.store.workflows.rules import UNDONE
from detent.workflow.requests import CallFunction, Operation, ReplayEnded
from detent.workflow.run import Undoable, WorkflowRun
from detent.workflow.step_operations import AskedStep, StepOperations

__all__ = ["undo_steps"]

_RETRY = Retry(3)
_GO_ON = (JobCancelled, LeaseLost, Snooze, Throttled, *OUTAGES)


def undo_steps(run: WorkflowRun, reached: BaseException | None = None, *, stops: bool = False) -> Operation[int]:
    """Undo the steps that are on record with an undo, apart from what is undone already; return how many were undone by
    this attempt. `UndoFailed` stops the chain: a retry of the job goes on with the same step.

    `reached` is the error with which the replay of the function ended. `stops`: a cancel ends it between two undos."""
    run.replays_only = False
    steps, undone = StepOperations(run, ""), 0
    paths = {*run.undoables, *run.history.undoable()}
    for path in sorted(paths, key=run.history.seq_of, reverse=True):
        if run.history.find(f"{path}~undo") is not None:
            continue
        if stops:
            run.context.raise_if_cancelled()
        if (one := run.undoables.get(path)) is None:
            raise _failed(run, path, f"the function no longer comes to it{_said(reached)}")
        try:
            yield from steps.tries(*_call(f"{path}~undo", one))
        except _GO_ON:
            raise
        except Exception as error:
            raise _failed(run, path, f"{type(error).__name__}: {error}") from error
        with run.lock:
            new = run.new(f"{path}~undo", "undo", value="null")
        yield from run.record(new)
        undone += 1
    if run.history.find(UNDONE) is None:
        with run.lock:
            new = run.new(UNDONE, "undo", value="null")
        yield from run.record(new)
    return undone


def _failed(run: WorkflowRun, path: str, why: str) -> UndoFailed:
    run.fatal = error = UndoFailed(run.claimed.job_id, path, why)
    return error


def _said(reached: BaseException | None) -> str:
    if reached is None or isinstance(reached, ReplayEnded):
        return ""
    return f" ({type(reached).__name__}: {reached})"


def _call(path: str, one: Undoable) -> tuple[AskedStep, CallFunction]:
    assert one.step.undo is not None
    step: Step[Any] = Step(one.step.name, retry=one.step.retry or _RETRY)
    asked = AskedStep(path, step, one.step.undo, (one.value,), {}, None)
    return asked, CallFunction(path, one.step.undo, (one.value,), {})
