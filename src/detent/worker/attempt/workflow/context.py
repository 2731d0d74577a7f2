"""The context of a workflow whose function is plain: operations run on its thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime
from functools import partial
from typing import Any, NoReturn, TypeVar

from detent.client.transaction import OpenTx
from detent.declare.task import Call
from detent.declare.workflow import Local, Seconds, Step, StepCall, as_step, check_name, is_async, seconds_of
from detent.declare.workflow_context import Arrival, Child, Wait
from detent.errors import DetentError, InvalidInput, ParkSwallowed
from detent.worker.attempt.workflow.base_context import BaseWorkflowContext, StepBlock, StepOnRecord, is_park, moment_of
from detent.workflow.branch import current_branch, inside_step
from detent.workflow.child_operations import ChildOperations, GroupOfChildren, GroupOutcome
from detent.workflow.requests import (
    CallFunction,
    Do,
    Operation,
    ParkAttempt,
    Pause,
    Request,
    Suspend,
    Transact,
    Write,
)

__all__ = ["PlainWorkflowContext"]

T = TypeVar("T")

_SLOTS_MAX = 64


class StepTx(OpenTx):
    """The transaction of a step. See `detent.Tx` for what each name promises; the result of the job is not its part."""

    def __init__(self, tx: Any, block: StepBlock) -> None:
        super().__init__(tx)
        self._block = block

    def intend(self, call: Call[Any], *, key: str | None = None) -> None:
        """Enqueue a call in this transaction."""
        self._tx("intend")
        self._block.intend(call, key)


class PlainWorkflowContext(BaseWorkflowContext):
    """Runs operations on the thread that asks for them."""

    def runner(self) -> object:
        return threading.get_ident()

    # -- steps -------------------------------------------------------------------------------------------------

    def step(self, step: str | Step[Any], fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self._refuse_async(fn)
        return self.drive(self.steps.step(as_step(step), fn, args, kwargs))

    def transact(self, step: str | Step[Any], fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self._refuse_async(fn)
        return self.drive(self.steps.transact(as_step(step), fn, args, kwargs))

    def scope(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self._refuse_async(fn)
        check_name("scope", name)
        path, row = self.steps.begin_scope(name)
        if row is not None:
            return self.steps.replay_scope(row, fn)
        with self.run.in_flight(self.scope_path, path):
            value = fn(self._inner(path), *args, **kwargs)
            return self.drive(self.steps.end_scope(path, fn, value))

    def _inner(self, path: str) -> PlainWorkflowContext:
        inner = object.__new__(type(self))
        inner.__dict__.update(self.__dict__)
        inner.__dict__.pop("random", None)
        inner.scope_path = path
        return inner

    def gather(self, *calls: StepCall[Any], slots: int = 8) -> list[Any]:
        if isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= _SLOTS_MAX:
            raise InvalidInput("slots", repr(slots)[:80], f"a whole number from 1 to {_SLOTS_MAX}")
        current_branch(self.runner())
        with ThreadPoolExecutor(max_workers=min(slots, max(1, len(calls)))) as threads:
            futures = [
                threads.submit(copy_context().run, partial(self.step, call.step, call.fn, *call.args, **call.kwargs))
                for call in calls
            ]
        return [future.result() for future in futures]

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
        return PlainChildGroup(self, self.drive(self.children.spawn_many(name, list(calls), limit)))

    def continue_as_new(self, **payload: Any) -> NoReturn:
        self.drive(self.run.continue_as_new(payload))
        raise AssertionError("a workflow that continues as new does not return")

    # -- the driver --------------------------------------------------------------------------------------------

    def drive(self, operation: Operation[T]) -> T:
        """Run an operation to its end, on this thread."""
        answer: Any = None
        step: Callable[[Any], Request] = operation.send
        while True:
            try:
                request = step(answer)
            except StopIteration as end:
                found: T = end.value
                return found
            try:
                answer, step = self._answer(request), operation.send
            except BaseException as error:
                answer, step = error, operation.throw

    def _answer(self, request: Request) -> Any:
        match request:
            case CallFunction():
                token = inside_step.set(request.path)
                try:
                    return request.fn(*request.args, **request.kwargs)
                finally:
                    inside_step.reset(token)
            case Write():
                return self._sink.steps.write(request.items)
            case Transact():
                return self._transact(request)
            case Do():
                return request.function()
            case Pause():
                return self.clock.sleep(request.seconds)
            case Suspend():
                raise self.run.suspend(request.wait)

    def _transact(self, request: Transact) -> Any:
        block = StepBlock(self, request.path)
        self.flush_events()
        try:
            with self._store.holders_block(self.job_id, self.attempt, block.leave) as raw:
                self.block_entered()
                tx = StepTx(raw, block)
                token = inside_step.set(request.path)
                try:
                    value = request.fn(tx, *request.args, **request.kwargs)
                finally:
                    inside_step.reset(token)
                    tx.end()
                block.step = request.step(value)
        except StepOnRecord as found:
            return found.answer
        finally:
            self.block_left()
        assert block.answer is not None
        assert block.step is not None
        self.run.note_recorded(block.step, block.answer.done_at)
        return block.answer

    def _refuse_async(self, fn: Callable[..., Any]) -> None:
        if is_async(fn):
            raise InvalidInput("fn", f"the async function {fn!r:.80}", "a plain function, or an async workflow")

    # -- the whole function ------------------------------------------------------------------------------------

    def body(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the workflow's function with everything that an attempt does around it."""

        def run(context: PlainWorkflowContext, **arguments: Any) -> Any:
            self.called_at = self.clock.monotonic()
            self.run.enter_scope("")
            try:
                value = function(context, **arguments)
            except BaseException as error:
                if not is_park(error):
                    raise
                self._park()
                raise ParkAttempt from None
            if self.run.parking:
                raise ParkSwallowed(self.job_id, self.run.parking[0].words)
            self.drive(self.run.finish())
            return value

        return run

    def _park(self) -> None:
        self.flush_events()
        continues_with = self.run.continues_with
        if continues_with is None:
            (answer,) = self._sink.steps.write([self.run.park(self.begun_after)])
        else:
            answer = self._store.workflow_continue(self.job_id, self.attempt, continues_with, self._sink.steps.worker)
        if isinstance(answer, DetentError):
            raise answer
        self.parked = True


class PlainChildGroup:
    """Children that were spawned together. See `ChildGroup`."""

    def __init__(self, context: PlainWorkflowContext, group: GroupOfChildren) -> None:
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
