"""Declaring workflows: `@app.workflow`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import fields
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

from detent.client.task import AsyncTask, PlainTask, SendableTask
from detent.declare.declaration import options_of
from detent.declare.limit import Limit
from detent.declare.task import Options
from detent.declare.workflow import WorkflowOptions
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.errors import InvalidSetting
from detent.model.backoff import Retry

__all__ = ["DeclareWorkflow", "WorkflowDeclarations"]

P = ParamSpec("P")
R = TypeVar("R")

_OWN = tuple(field.name for field in fields(WorkflowOptions))


class DeclareWorkflow(Protocol):
    """The decorator that `@app.workflow(...)` returns."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[AsyncWorkflowContext, P], Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[WorkflowContext, P], R], /) -> PlainTask[P, R]: ...


class WorkflowDeclarations:
    """What an application declares about workflows."""

    def _declare(
        self, function: Callable[..., Any], name: str | None, aliases: Sequence[str], options: Options
    ) -> SendableTask[..., Any, Any]:
        raise NotImplementedError

    @overload
    def workflow(
        self, function: Callable[Concatenate[AsyncWorkflowContext, P], Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...

    @overload
    def workflow(self, function: Callable[Concatenate[WorkflowContext, P], R], /) -> PlainTask[P, R]: ...

    @overload
    def workflow(
        self,
        /,
        *,
        version: int = 1,
        supports: tuple[int, ...] = (),
        drift: Literal["refuse", "report"] = "refuse",
        undo: Literal["on_failure", "on_request"] = "on_failure",
        linger: float = 0.05,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str = "default",
        priority: int = 0,
        retry: Retry | None = None,
        timeout: float | None = None,
        unique: Literal["pending", "active"] | None = None,
        process: bool = False,
        dead_letter: bool = True,
        result_ttl: float | None = None,
        stale_after: float | None = None,
        stalled_after: float | None = None,
        limit: Limit | None = None,
        limit_key: str | Callable[..., str] | None = None,
        cost: int | Callable[..., int] | None = None,
        secret: tuple[str, ...] = (),
    ) -> DeclareWorkflow: ...

    def workflow(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        retry: Retry | None = None,
        **options: Any,
    ) -> Any:
        """Declare a workflow: a task whose function is divided into steps, each recorded once. `@app.workflow`, or
        `@app.workflow(version=2, supports=(1, 2))`. After a crash, a retry or a wait, the function runs again from the
        top, and recorded steps return their values.

        - `version`, `supports`: the version of the code, and those that it can continue; see `ctx.version`.
        - `drift`: `"refuse"` stops a workflow whose code no longer fits its record before a step runs, `"report"` only
          writes an event.
        - `undo`: `"on_failure"` undoes its steps when it fails for good or is cancelled, `"on_request"` only when
          asked.
        - `linger`: seconds that a wait stays in its slot before it parks, if other branches of the function run.
        - All other options are those of a task, with `timeout` for each attempt. `idempotent` and `probe` belong to
          steps: `Step(…, once=True, probe=…)`.
        """
        for wrong in ("idempotent", "probe"):
            if wrong in options:
                raise InvalidSetting(wrong, "an option of a workflow", "Step(…, once=True, probe=…) for a step")
        own = {key: options.pop(key) for key in _OWN if key in options}
        chosen = options_of(Options, "workflow", {"retry": retry or Retry(), **options})
        workflow = options_of(WorkflowOptions, "workflow", own)

        def declare(found: Callable[..., Any]) -> SendableTask[..., Any, Any]:
            task = self._declare(found, name, aliases, chosen)
            task.workflow = workflow
            return task

        return declare if function is None else declare(function)
