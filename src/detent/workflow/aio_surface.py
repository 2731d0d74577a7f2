"""What the function of an async workflow can ask for: each call is an operation that `drive` runs to its end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, NoReturn, TypeVar

from detent.declare.task import Call
from detent.declare.workflow import Local, Seconds, Step, as_step, check_name, is_async, seconds_of
from detent.declare.workflow_context import Arrival, Child, Wait
from detent.errors import InvalidInput
from detent.workflow.child_operations import ChildOperations, GroupOfChildren, GroupOutcome
from detent.workflow.requests import Do, Operation
from detent.workflow.surface import Surface, moment_of

__all__ = ["AioSurface"]

T = TypeVar("T")

_PORTION = 1000
"""How many results of children are in memory at once."""


class AioSurface(Surface):
    """See `AsyncWorkflowContext` for what each name promises."""

    @abstractmethod
    async def drive(self, operation: Operation[T]) -> T:
        """Run an operation to its end."""

    # -- steps -------------------------------------------------------------------------------------------------

    async def step(self, step: str | Step[Any], fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return await self.drive(self.steps.step(as_step(step), fn, args, kwargs))

    async def transact(self, step: str | Step[Any], fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if not is_async(fn):
            raise InvalidInput("fn", f"the plain function {fn!r:.80}", "an async function, since tx.execute is awaited")
        return await self.drive(self.steps.transact(as_step(step), fn, args, kwargs))

    async def scope(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        check_name("scope", name)
        path, row = self.steps.begin_scope(name)
        if row is not None:
            return self.steps.replay_scope(row, fn)
        with self.run.in_flight(self.scope_path, path):
            value = await fn(self.inner(path), *args, **kwargs)
            return await self.drive(self.steps.end_scope(path, fn, value))

    # -- waits -------------------------------------------------------------------------------------------------

    async def sleep(self, seconds: Seconds) -> None:
        await self.drive(self.waits.sleep(lasts=seconds_of("seconds", seconds)))

    async def sleep_until(self, when: datetime | Local) -> None:
        await self.drive(self.waits.sleep(until=moment_of(when)))

    async def wait_for(self, signal: str, kind: Any = Any, *, timeout: Seconds | None = None) -> Any:
        return await self.drive(self.waits.wait_for(signal, kind, timeout))

    async def first(self, *waits: Wait[Any], timeout: Seconds | None = None) -> Arrival[Any]:
        return await self.drive(self.children.first(waits, timeout))

    # -- children ----------------------------------------------------------------------------------------------

    async def spawn(self, call: Call[T], *, name: str | None = None, detached: bool = False) -> Child[T]:
        return await self.drive(self.children.spawn(call, name, detached))

    async def join(self, child: Child[Any], *, wait: bool = False) -> Any:
        return await self.drive(self.children.join(child, wait))

    async def spawn_many(self, name: str, calls: Iterable[Call[T]], *, limit: int | None = None) -> AioChildGroup:
        return AioChildGroup(
            self,
            await self.drive(self.children.spawn_many(name, calls, limit)),
        )

    async def continue_as_new(self, **payload: Any) -> NoReturn:
        await self.drive(self.run.continue_as_new(payload))
        raise AssertionError("a workflow that continues as new does not return")


class AioChildGroup:
    """Children that were spawned together. See `AsyncChildGroup`."""

    def __init__(self, context: AioSurface, group: GroupOfChildren) -> None:
        self._context = context
        self._group = group

    async def join(self, *, tolerate: int | str = 0, wait: bool = False) -> AioGroupResult:
        children = self._context.children
        outcome = await self._context.drive(children.join_many(self._group, tolerate, wait))
        return AioGroupResult(self._context, children, outcome)


class AioGroupResult:
    """How a group of children has ended. See `AsyncGroupResult`."""

    def __init__(self, context: AioSurface, children: ChildOperations, outcome: GroupOutcome) -> None:
        self._context = context
        self._children = children
        self._outcome = outcome
        self.total = outcome.total
        self.succeeded = outcome.succeeded
        self.failed = outcome.failed

    def results(self) -> AsyncIterator[Any]:
        """Return the results of those that succeeded."""
        return self._each(self._children.results(self._outcome.group))

    def failures(self) -> AsyncIterator[Child[Any]]:
        """Return those that did not succeed."""
        return self._each(self._children.failures(self._outcome.group))

    async def _each(self, found: Iterator[T]) -> AsyncIterator[T]:
        while portion := await self._context.drive(_done(lambda: list(islice(found, _PORTION)))):
            for one in portion:
                yield one


def _done(function: Callable[[], T]) -> Operation[T]:
    """Return an operation that reads from the database."""
    found: T = yield Do(function)
    return found
