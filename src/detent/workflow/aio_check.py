"""Checking a deploy: parked workflows are replayed against this code, without effects, up to their first new step.

The function runs with a context that serves what is on record and stops at whatever is not. Nothing is written, and no
step is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from detent.declare.settings import Settings
from detent.declare.task import Call, Task
from detent.declare.workflow import StepCall
from detent.errors import InvalidArguments, UnknownTask, WorkflowDrift
from detent.model import json_codec
from detent.model.records import Claimed, JobRow, NewJob
from detent.model.workflow_records import NewWait, StepBegun, WaitOn, WorkflowHistory, WorkflowRow
from detent.store.contract import Store
from detent.workflow.aio_surface import AioSurface
from detent.workflow.branch import inside_step
from detent.workflow.plain_surface import PlainSurface
from detent.workflow.requests import CallFunction, Operation, Request, Suspend, Transact, Write
from detent.workflow.run import WorkflowRun
from detent.workflow.surface import Surface

__all__ = ["Verdict", "WorkflowCheck", "check_workflow"]

T = TypeVar("T")
Verdict = Literal["continues", "stays parked", "drift", "unsupported version", "unknown task", "fails"]
_PAGE = 1000
_WAITS_MAX = 100


@dataclass(frozen=True, slots=True)
class WorkflowCheck:
    """What would become of a parked workflow under this code. `detail` says where it goes on, or why it does not.

    `stays parked`: the record fits the code, but the workflow waits, without a time limit, for a signal for which the
    code does not wait there any more. Nothing else wakes it.
    """

    job_id: int
    task: str
    version: int
    verdict: Verdict
    detail: str


class _Reached(BaseException):
    """The function has come to something that is not on record."""

    def __init__(self, what: str, on: tuple[WaitOn, ...] = ()) -> None:
        self.what = what
        self.on = on


class _CheckContext(Surface):
    """A context that serves the record and nothing else."""

    def __init__(self, store: Store, settings: Settings, row: JobRow, task: Task[..., Any, Any]) -> None:
        assert task.workflow is not None
        self.store = store
        self.settings = settings
        self._row = row
        self._task = task
        self.claimed = Claimed(
            row.id, row.attempt + 1, row.task, row.payload, row.tenant, row.queue, row.metadata, row.correlation_id,
            row.traceparent, row.run_id, row.spared, row.attempts_max,
        )  # fmt: skip
        self.run = WorkflowRun(self, task.workflow)

    @property
    def job_key(self) -> str:
        return f"{self.store.identity_of(self._row.id)}/{self._row.tenant}/job/{self._row.id}"

    @property
    def effect_key(self) -> str:
        path = inside_step.get()
        return self.job_key if path is None else f"{self.job_key}/{self.generation}/{path}"

    job_id = property(lambda self: self._row.id)
    task = property(lambda self: self._row.task)
    attempt = property(lambda self: self.claimed.attempt)
    tenant = property(lambda self: self._row.tenant)
    correlation_id = property(lambda self: self._row.correlation_id)
    cancelled = False

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the job."""
        found: dict[str, Any] = {} if self._row.metadata is None else json_codec.decode(self._row.metadata)
        return found

    def runner(self) -> object:
        """Return the same for all: branches follow one another."""
        return None

    def raise_if_cancelled(self) -> None:
        """Do nothing: a check is not cancelled."""

    def request_cancel(self) -> None:
        """Do nothing: a check is not cancelled."""

    def event(self, message: str, /, *, level: str = "info", key: str | None = None, **payload: Any) -> None:
        """Write nothing."""

    def stream_line(self, stream: str, text: str, number: int) -> None:
        """Write nothing."""

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Write nothing."""

    def spend(self, cost: float) -> None:
        """Take nothing."""

    def result_of(self, node: str, kind: Any = Any) -> Any:
        """Stop: results of other jobs are not read."""
        raise _Reached("a result of another node")

    def commit(self, connection: Any = None) -> Any:
        """Stop: nothing may be committed."""
        raise _Reached("the commit")

    def monotonic(self) -> float:
        """Return no time: nothing is called."""
        return 0.0

    def now_here(self) -> datetime:
        """Stop: the time is not on record."""
        raise _Reached("its first step")

    def chance(self) -> float:
        """Return the middle."""
        return 0.5

    def find_task(self, name: str) -> Task[..., Any, Any]:
        """Return the task itself; others are not needed."""
        return self._task

    def child_job(self, call: Call[Any], job_id: int) -> NewJob:
        """Stop: children are not on record."""
        raise _Reached("a child")

    def why_in_doubt(self, begun: StepBegun | None, path: str) -> str | None:
        """Return None: it is not asked."""
        return None


def _stop(request: Request) -> _Reached:
    match request:
        case CallFunction() | Transact():
            return _Reached(f"step {request.path}")
        case Suspend():
            return _Reached(f"the wait for {request.wait.words}")
        case Write(items=(*_, NewWait() as wait)):
            return _Reached(f"the wait for {_words(wait.on)}", wait.on)
        case _:
            return _Reached("its next step")


def _words(on: Sequence[WaitOn]) -> str:
    return (
        " or ".join(f"signal {one.name}" if one.kind == "signal" else f"children {one.name}" for one in on) or "a time"
    )


class _PlainCheck(_CheckContext, PlainSurface):
    def drive(self, operation: Operation[T]) -> T:
        return _first(operation)

    def gather(self, *calls: StepCall[Any], slots: int = 8) -> list[Any]:
        return [self.step(call.step, call.fn, *call.args, **call.kwargs) for call in calls]


class _AioCheck(_CheckContext, AioSurface):
    def runner(self) -> object:
        return asyncio.current_task()

    async def drive(self, operation: Operation[T]) -> T:
        return _first(operation)


def _first(operation: Operation[T]) -> T:
    """Run an operation that is on record; stop at the first request of one that is not."""
    try:
        request = operation.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
    operation.close()
    raise _stop(request)


def check_workflow(
    store: Store,
    settings: Settings,
    row: JobRow,
    workflow: WorkflowRow | None,
    find_task: Callable[[str], Task[..., Any, Any]],
) -> WorkflowCheck:
    """Return what would become of a workflow under this code. Changes nothing."""
    version = 0 if workflow is None else workflow.version

    def found(verdict: Verdict, detail: str) -> WorkflowCheck:
        return WorkflowCheck(row.id, row.task, version, verdict, detail)

    try:
        task = find_task(row.task)
    except UnknownTask as error:
        return found("unknown task", str(error))
    if task.workflow is None:
        return found("unknown task", f"task {row.task} is no workflow in this code")
    if version and version not in task.workflow.supports:
        supports = ", ".join(map(str, task.workflow.supports))
        return found("unsupported version", f"it began under version {version}; this code supports {supports}")
    context = (_AioCheck if task.is_async else _PlainCheck)(store, settings, row, task)
    try:
        for page in _history(store, row, workflow):
            context.run.history.load(page)
        arguments = task.decode(row.payload)
        if task.is_async:
            asyncio.run(_awaited(context, task, arguments))
        else:
            context.run.start()
            task.function(context, **arguments)
    except _Reached as reached:
        if waits := _waits_in_vain(store, workflow, reached.on):
            words = _words(waits)
            return found("stays parked", f"for {words}, and this code goes on with {reached.what}: send it {words}")
        return found("continues", f"with {reached.what}")
    except WorkflowDrift as error:
        return found("drift", str(error))
    except InvalidArguments as error:
        return found("fails", f"its payload no longer fits: {error}")
    except BaseExceptionGroup as group:
        if group.subgroup(WorkflowDrift) is not None:
            return found("drift", str(group.exceptions[0]))
        if group.subgroup(_Reached) is not None:
            return found("continues", "with its next steps")
        return found("fails", f"{type(group).__name__}: {group}")
    except Exception as error:
        return found("fails", f"{type(error).__name__}: {error}")
    return found("continues", "to its end")


def _waits_in_vain(store: Store, workflow: WorkflowRow | None, on: Sequence[WaitOn]) -> list[WaitOn]:
    """Return the signals for which a workflow is parked, if nothing else wakes it, and the code, which goes on with a
    wait `on` others or with no wait, waits for none of them."""
    if workflow is None or workflow.parked_at is None or workflow.due_at is not None:
        return []
    rows = store.wait_list(job_id=workflow.job_id, limit=_WAITS_MAX).rows
    signals = [WaitOn("signal", row.name or "") for row in rows if row.kind == "signal"]
    known = {one.name for one in on if one.kind == "signal"}
    return signals if len(signals) == len(rows) and not known & {one.name for one in signals} else []


async def _awaited(context: Any, task: Task[..., Any, Any], arguments: dict[str, Any]) -> Any:
    context.run.start()
    return await task.function(context, **arguments)


def _history(store: Store, row: JobRow, workflow: WorkflowRow | None) -> Iterator[WorkflowHistory]:
    after: str | None = None
    if workflow is None:
        return
    while True:
        page = store.step_list(row.id, after=after, limit=_PAGE)
        yield WorkflowHistory(
            version=workflow.version,
            generation=workflow.generation,
            now=row.created_at,
            steps=page.rows,
            next=page.next,
        )
        after = page.next
        if after is None:
            return
