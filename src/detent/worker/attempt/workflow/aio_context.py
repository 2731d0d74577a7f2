"""The context of a workflow whose function is async: operations run on the event loop, and several may run at once.

A wait that has not ended suspends its branch. When every branch is suspended, the attempt parks: each wait raises
`ParkAttempt`, and the function unwinds. Steps in flight are finished and recorded before that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from detent.client.aio_threads import answer_of, on_one_thread
from detent.client.transaction import AsyncOpenTx
from detent.declare.signals import JobCancelled
from detent.declare.task import Call
from detent.declare.workflow import is_async
from detent.errors import DetentError, ParkSwallowed
from detent.model.workflow_records import CancelFound
from detent.worker.attempt.workflow.base_context import BaseWorkflowContext, StepBlock, StepOnRecord, is_park
from detent.worker.attempt.workflow.context import StepTx
from detent.workflow.aio_surface import AioSurface
from detent.workflow.branch import Branch, current_branch, inside_step, set_branch
from detent.workflow.requests import (
    CallFunction,
    Do,
    Operation,
    ParkAttempt,
    Pause,
    PendingWait,
    ReplayEnded,
    Request,
    Suspend,
    Transact,
    Write,
)
from detent.workflow.undo_operations import undo_steps

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


class AioWorkflowContext(BaseWorkflowContext, AioSurface):
    """Runs operations on the event loop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._flow = _Flow()

    def runner(self) -> object:
        return asyncio.current_task()

    # -- the driver --------------------------------------------------------------------------------------------

    async def drive(self, operation: Operation[T]) -> T:
        """Run an operation to its end. One of a branch that others may cancel runs in a task of its own, so that a step
        in flight is recorded all the same."""
        branch = current_branch(self.runner())
        if not branch:
            return await self._run(operation)
        self._flow.forked = True
        task = asyncio.create_task(self._run_apart(operation, branch))
        self._flow.tasks.add(task)
        task.add_done_callback(self._flow.tasks.discard)
        return await asyncio.shield(task)

    async def _run_apart(self, operation: Operation[T], branch: Branch) -> T:
        set_branch(self.runner(), branch)
        return await self._run(operation)

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
                except ReplayEnded:
                    # Other branches may still come to steps on record.
                    await self._suspend(PendingWait((), None, "the end of the replay"))
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
            holders = self._store.holders_block(self._claimed.job_id, self.attempt, block.leave)
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
                waiter.set_exception(ReplayEnded() if self.run.replays_only else self.run.suspend(wait))

    # -- the whole function ------------------------------------------------------------------------------------

    def body(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the workflow's function with everything that an attempt does around it."""

        async def run(context: AioWorkflowContext, **arguments: Any) -> Any:
            self.called_at = self.clock.monotonic()
            self.run.start()
            try:
                self.begin_again()
                if self.cancelled and await asyncio.to_thread(self.begin_cancelled):
                    self.run.start()
                return await self._whole(function, arguments)
            except BaseException as error:
                if not is_park(error):
                    raise
                await self._park()
                if not self.parked:
                    await self._park_cancelled()
            raise ParkAttempt from None

        return run

    async def _whole(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call the function, and undo its steps if it has failed for good."""
        failed: BaseException | None = None
        reached: BaseException | None = None
        try:
            try:
                value = await function(self, **arguments)
            finally:
                await self._end_branches()
            if self.run.parking:
                raise ParkSwallowed(self.job_id, self.run.parking[0].words)
            if not self.run.replays_only:
                await self.drive(self.run.finish())
                return value
        except BaseException as error:
            reached = error
            if not self.run.replays_only:
                if is_park(error) or not self.undoes(error):
                    raise
                if not await asyncio.to_thread(self.begin_undo, error):
                    raise
                if self.cancelled:
                    # Its worker waits for its end. An undo may take longer, so the next attempt undoes the steps.
                    await self.drive(self.run.write_pending())
                    raise self.run.suspend_before_undo() from None
                failed = error
        await self._undo(function, arguments, reached)
        await asyncio.to_thread(self.end_undone, failed)
        return None

    async def _undo(
        self, function: Callable[..., Any], arguments: dict[str, Any], reached: BaseException | None = None
    ) -> None:
        """Undo the steps. If some were not reached, the function is replayed first."""
        if not self.run.replays_only and self.must_replay:
            await self.drive(self.run.write_pending())
            await asyncio.to_thread(self.replay_again)
            self.run.start()
            self._flow = _Flow()
            try:
                await function(self, **arguments)
            except BaseException as error:
                reached = error
            await self._end_branches()
        await self.drive(undo_steps(self.run, reached, stops=self.undo_of is not None))

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
                self._store.workflow_continue, self._claimed.job_id, self.attempt, continues_with, steps.worker
            )
        if isinstance(answer, DetentError):
            raise answer
        self.parked = not isinstance(answer, CancelFound)

    async def _park_cancelled(self) -> None:
        """Have the next attempt undo the steps of a workflow that was cancelled when it was about to park."""
        self.request_cancel()
        if not await asyncio.to_thread(self.begin_undo, JobCancelled()):
            raise JobCancelled
        self.run.suspend_before_undo()
        await self._park()


async def _called(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function, and await what it returns if that can be awaited. A plain function runs on a thread."""
    if is_async(fn):
        return await fn(*args, **kwargs)
    found = await asyncio.to_thread(fn, *args, **kwargs)
    return await found if asyncio.iscoroutine(found) else found
