"""What the function of a plain workflow can ask for: each call is an operation that `drive` runs to its end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from detent.declare.task import Call
from detent.declare.workflow import Local, Seconds, Step, StepCall, as_step, check_name, is_async, seconds_of
from detent.declare.workflow_context import Arrival, Child, Wait
from detent.errors import InvalidInput
from detent.workflow.child_operations import ChildOperations, GroupOfChildren, GroupOutcome
from detent.workflow.requests import Operation
from detent.workflow.surface import Surface, moment_of

__all__ = ["PlainSurface"]

T = TypeVar("T")


class PlainSurface(Surface):
    """See `WorkflowContext` for what each name promises."""

    # -- steps -------------------------------------------------------------------------------------------------

    def step(self, step: str | Step[Any], fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return self.drive(self.steps.step(_plain_step(step, fn), fn, args, kwargs))

    def transact(self, step: str | Step[Any], fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return self.drive(self.steps.transact(_plain_step(step, fn), fn, args, kwargs))

    def scope(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        _refuse_async(fn)
        check_name("scope", name)
        path, row = self.steps.begin_scope(name)
        if row is not None:
            return self.steps.replay_scope(row, fn)
        with self.run.in_flight(self.scope_path, path):
            value = fn(self.inner(path), *args, **kwargs)
            return self.drive(self.steps.end_scope(path, fn, value))

    @abstractmethod
    def gather(self, *calls: StepCall[Any], slots: int = 8) -> list[Any]:
        """Run steps at the same time."""

    @abstractmethod
    def drive(self, operation: Operation[T]) -> T:
        """Run an operation to its end."""

    # -- waits -------------------------------------------------------------------------------------------------

    def sleep(self, seconds: Seconds) -> None:
        self.drive(self.waits.sleep(lasts=seconds_of("seconds", seconds)))

    def sleep_until(self, when: datetime | Local) -> None:
        self.drive(self.waits.sleep(until=moment_of(when)))

    def wait_for(self, signal: str, kind: Any = Any, *, timeout: Seconds | None = None) -> Any:
        return self.drive(self.waits.wait_for(signal, kind, timeout))

    def first(self, *waits: Wait[Any], timeout: Seconds | None = None) -> Arrival[Any]:
        return self.drive(self.children.first(waits, timeout))

    # -- children ----------------------------------------------------------------------------------------------

    def spawn(self, call: Call[T], *, name: str | None = None, detached: bool = False) -> Child[T]:
        return self.drive(self.children.spawn(call, name, detached))

    def join(self, child: Child[Any], *, wait: bool = False) -> Any:
        return self.drive(self.children.join(child, wait))

    def spawn_many(self, name: str, calls: Iterable[Call[T]], *, limit: int | None = None) -> PlainChildGroup:
        return PlainChildGroup(self, self.drive(self.children.spawn_many(name, calls, limit)))

    def continue_as_new(self, **payload: Any) -> NoReturn:
        self.drive(self.run.continue_as_new(payload))
        raise AssertionError("a workflow that continues as new does not return")


class PlainChildGroup:
    """Children that were spawned together. See `ChildGroup`."""

    def __init__(self, context: PlainSurface, group: GroupOfChildren) -> None:
        self._context = context
        self._group = group

    def join(self, *, tolerate: int | str = 0, wait: bool = False) -> PlainGroupResult:
        children = self._context.children
        return PlainGroupResult(children, self._context.drive(children.join_many(self._group, tolerate, wait)))


class PlainGroupResult:
    """How a group of children has ended. See `GroupResult`."""

    def __init__(self, children: ChildOperations, outcome: GroupOutcome) -> None:
        self._children = children
        self._outcome = outcome
        self.total = outcome.total
        self.succeeded = outcome.succeeded
        self.failed = outcome.failed

    def results(self) -> Iterator[Any]:
        """Return the results of those that succeeded."""
        return self._children.results(self._outcome.group)

    def failures(self) -> Iterator[Child[Any]]:
        """Return those that did not succeed."""
        return self._children.failures(self._outcome.group)


def _plain_step(step: str | Step[Any], fn: Callable[..., Any]) -> Step[Any]:
    """Return a step whose functions are plain. `InvalidInput`: the coroutine of another one would never run."""
    found = as_step(step)
    _refuse_async(fn)
    _refuse_async(found.undo, f"undo of step {found.name!r}")
    _refuse_async(found.probe, f"probe of step {found.name!r}")
    return found


def _refuse_async(fn: Callable[..., Any] | None, field: str = "fn") -> None:
    if fn is not None and is_async(fn):
        raise InvalidInput(field, f"the async function {fn!r:.80}", "a plain function, or an async workflow")
