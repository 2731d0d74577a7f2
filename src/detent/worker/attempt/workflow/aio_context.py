"""The context of a workflow whose function is async: operations run on the event loop, and several may run at once.

A wait that has not ended suspends its branch. When every branch is suspended, the attempt parks: each wait raises
`ParkAttempt`, and the function unwinds. Steps in flight are finished and recorded before that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from detent.client.aio_threads import answer_of, on_one_thread
from detent.client.transaction import AsyncOpenTx
from detent.declare.task import Call
from detent.declare.workflow import Local, Seconds, Step, as_step, check_name, is_async, seconds_of
from detent.declare.workflow_context import Arrival, Child, Wait
from detent.errors import DetentError, InvalidInput, ParkSwallowed
from detent.worker.attempt.workflow.base_context import BaseWorkflowContext, StepBlock, StepOnRecord, is_park, moment_of
from detent.worker.attempt.workflow.context import StepTx
from detent.workflow.branch import current_branch, inside_step
from detent.workflow.child_operations import ChildOperations, GroupOfChildren, GroupOutcome
from detent.workflow.requests import (
    CallFunction,
    Do,
    Operation,
    ParkAttempt,
    Pause,
    PendingWait,
    Request,
    Suspend,
    Transact,
    Write,
)

__all__ = ["AioWorkflowContext"]

T = TypeVar("T")


class _Flow:
    """The branches of one function: how many run, and which are suspended."""

    def __init__(self) -> None:
        self.active = 0
        self.moves = 0
        self.forked = False
        self.suspended: dict[asyncio.Future[None], PendingWait] = {}
        self.tasks: set[asyncio.Task[Any]] = set()


class AsyncStepTx(AsyncOpenTx):
    """The transaction of a step of an async workflow."""

    def __init__(self, tx: StepTx, on_thread: Any) -> None:
        super().__init__(tx, on_thread)
        self._step_tx = tx

    def intend(self, call: Call[Any], *, key: str | None = None) -> None:
        """Enqueue a call in this transaction."""
        self._step_tx.intend(call, key=key)


class AioWorkflowContext(BaseWorkflowContext):
    """Runs operations on the event loop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._flow = _Flow()

    def runner(self) -> object:
        return asyncio.current_task()

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
            inner = object.__new__(type(self))
            inner.__dict__.update(self.__dict__)
            inner.__dict__.pop("random", None)
            inner.scope_path = path
            value = await fn(inner, *args, **kwargs)
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
            await self.drive(self.children.spawn_many(name, list(calls), limit)),
        )

    async def continue_as_new(self, **payload: Any) -> NoReturn:
        await self.drive(self.run.continue_as_new(payload))
        raise AssertionError("a workflow that continues as new does not return")

    # -- the driver --------------------------------------------------------------------------------------------

    async def drive(self, operation: Operation[T]) -> T:
        """Run an operation to its end. One of a branch that others may cancel runs in a task of its own, so that a step
        in flight is recorded all the same."""
        if not current_branch(self.runner()):
            return await self._run(operation)
        self._flow.forked = True
        task = asyncio.create_task(self._run(operation))
        self._flow.tasks.add(task)
        task.add_done_callback(self._flow.tasks.discard)
        return await asyncio.shield(task)

    async def _run(self, operation: Operation[T]) -> T:
        flow = self._flow
        flow.active += 1
        flow.moves += 1
        answer: Any = None
        step: Callable[[Any], Request] = operation.send
        try:
            while True:
                try:
                    request = step(answer)
                except StopIteration as end:
                    found: T = end.value
                    return found
                try:
                    answer, step = await self._answer(request), operation.send
                except BaseException as error:
                    answer, step = error, operation.throw
        finally:
            flow.active -= 1
            flow.moves += 1
            self._park_soon()

    async def _answer(self, request: Request) -> Any:
        match request:
            case CallFunction():
                token = inside_step.set(request.path)
                try:
                    if request.timeout is None:
                        return await _called(request.fn, *request.args, **request.kwargs)
                    async with asyncio.timeout(request.timeout):
                        return await _called(request.fn, *request.args, **request.kwargs)
                finally:
                    inside_step.reset(token)
            case Write():
                return await answer_of(self._sink.steps.submit(request.items))
            case Transact():
                return await self._transact(request)
            case Do():
                return await asyncio.to_thread(request.function)
            case Pause():
                return await asyncio.sleep(request.seconds)
            case Suspend():
                return await self._suspend(request.wait)

    async def _transact(self, request: Transact) -> Any:
        block = StepBlock(self, request.path)
        await asyncio.to_thread(self.flush_events)
        try:
            holders = self._store.holders_block(self.job_id, self.attempt, block.leave)
            async with on_one_thread(holders) as (raw, on_thread):
                self.block_entered()
                plain = StepTx(raw, block)
                token = inside_step.set(request.path)
                try:
                    value = await request.fn(AsyncStepTx(plain, on_thread), *request.args, **request.kwargs)
                finally:
                    inside_step.reset(token)
                    plain.end()
                block.step = request.step(value)
        except StepOnRecord as found:
            return found.answer
        finally:
            self.block_left()
        assert block.answer is not None
        assert block.step is not None
        self.run.note_recorded(block.step, block.answer.done_at)
        return block.answer

    # -- parking -----------------------------------------------------------------------------------------------

    async def _suspend(self, wait: PendingWait) -> NoReturn:
        flow = self._flow
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        flow.suspended[waiter] = wait
        flow.active -= 1
        self._park_soon()
        try:
            await waiter
        finally:
            flow.active += 1
            del flow.suspended[waiter]
        raise AssertionError("a wait that is suspended does not go on")

    def _park_soon(self) -> None:
        """Park if every branch is suspended, and none goes on within the time that waits linger. A function without
        branches of its own need not linger."""
        flow = self._flow
        if flow.active == 0 and flow.suspended:
            linger = self.run.options.linger if flow.forked else 0.0
            asyncio.get_running_loop().call_later(linger, self._park_if_idle, flow.moves)

    def _park_if_idle(self, moves: int) -> None:
        flow = self._flow
        if flow.active or flow.moves != moves:
            return
        for waiter, wait in list(flow.suspended.items()):
            if not waiter.done():
                waiter.set_exception(self.run.suspend(wait))

    # -- the whole function ------------------------------------------------------------------------------------

    def body(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the workflow's function with everything that an attempt does around it."""

        async def run(context: AioWorkflowContext, **arguments: Any) -> Any:
            self.called_at = self.clock.monotonic()
            self.run.enter_scope("")
            try:
                value = await function(context, **arguments)
            except BaseException as error:
                await self._end_branches()
                if not is_park(error):
                    raise
                await self._park()
                raise ParkAttempt from None
            await self._end_branches()
            if self.run.parking:
                raise ParkSwallowed(self.job_id, self.run.parking[0].words)
            await self.drive(self.run.finish())
            return value

        return run

    async def _end_branches(self) -> None:
        """Let steps in flight end and be recorded, and end branches that only wait."""
        flow = self._flow
        for waiter in list(flow.suspended):
            waiter.cancel()
        if self.cancelled:
            for task in flow.tasks:
                task.cancel()
        if flow.tasks:
            await asyncio.gather(*flow.tasks, return_exceptions=True)

    async def _park(self) -> None:
        await asyncio.to_thread(self.flush_events)
        steps, continues_with = self._sink.steps, self.run.continues_with
        if continues_with is None:
            (answer,) = await answer_of(steps.submit([self.run.park(self.begun_after)]))
        else:
            answer = await asyncio.to_thread(
                self._store.workflow_continue, self.job_id, self.attempt, continues_with, steps.worker
            )
        if isinstance(answer, DetentError):
            raise answer
        self.parked = True


class AioChildGroup:
    """Children that were spawned together. See `AsyncChildGroup`."""

    def __init__(self, context: AioWorkflowContext, group: GroupOfChildren) -> None:
        self._context = context
        self._group = group

    async def join(self, *, tolerate: int | str = 0, wait: bool = False) -> AioGroupResult:
        children = self._context.children
        return AioGroupResult(children, await self._context.drive(children.join_many(self._group, tolerate, wait)))


class AioGroupResult:
    """How a group of children has ended. See `AsyncGroupResult`."""

    def __init__(self, children: ChildOperations, outcome: GroupOutcome) -> None:
        self._children = children
        self._outcome = outcome
        self.total = outcome.total
        self.succeeded = outcome.succeeded
        self.failed = outcome.failed

    async def results(self) -> list[Any]:
        """Return the results of those that succeeded."""
        return await asyncio.to_thread(lambda: list(self._children.results(self._outcome.group)))

    async def failures(self) -> list[Child[Any]]:
        """Return those that did not succeed."""
        return await asyncio.to_thread(lambda: list(self._children.failures(self._outcome.group)))


async def _called(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function, and await what it returns if that can be awaited. A plain function runs on a thread."""
    if is_async(fn):
        return await fn(*args, **kwargs)
    found = await asyncio.to_thread(fn, *args, **kwargs)
    return await found if asyncio.iscoroutine(found) else found
