"""The context of a workflow whose function is plain: operations run on its thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar

from detent.client.transaction import OpenTx
from detent.declare.signals import JobCancelled
from detent.declare.task import Call
from detent.declare.workflow import StepCall
from detent.errors import DetentError, InvalidInput, ParkSwallowed
from detent.model.workflow_records import CancelFound
from detent.worker.attempt.workflow.base_context import BaseWorkflowContext, StepBlock, StepOnRecord, is_park
from detent.workflow.branch import current_branch, inside_step
from detent.workflow.plain_surface import PlainSurface
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
from detent.workflow.undo_operations import undo_steps

__all__ = ["PlainWorkflowContext"]

T = TypeVar("T")

_SLOTS_MAX = 64


def _refuse_coroutine(request: CallFunction, value: Any) -> Any:
    """Return what a function has returned. `InvalidInput` for a coroutine, of a lambda for instance: it would never
    run, although an undo would seem to be done."""
    if not isinstance(value, CoroutineType):
        return value
    value.close()
    found = f"a coroutine from {request.fn!r:.80}"
    raise InvalidInput(f"step {request.path!r}", found, "a plain function, or an async workflow")


class StepTx(OpenTx):
    """The transaction of a step. See `detent.Tx` for what each name promises; the result of the job is not its part."""

    def __init__(self, tx: Any, block: StepBlock) -> None:
        super().__init__(tx)
        self._block = block

    def intend(self, call: Call[Any], *, key: str | None = None) -> None:
        """Enqueue a call in this transaction."""
        self._tx("intend")
        self._block.intend(call, key)


class PlainWorkflowContext(BaseWorkflowContext, PlainSurface):
    """Runs operations on the thread that asks for them."""

    def runner(self) -> object:
        return threading.get_ident()

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
                    return _refuse_coroutine(request, request.fn(*request.args, **request.kwargs))
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
            with self._store.holders_block(self._claimed.job_id, self.attempt, block.leave) as raw:
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

    # -- the whole function ------------------------------------------------------------------------------------

    def body(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the workflow's function with everything that an attempt does around it."""

        def run(context: PlainWorkflowContext, **arguments: Any) -> Any:
            self.called_at = self.clock.monotonic()
            self.run.start()
            try:
                self.begin_again()
                if self.begin_cancelled():
                    self.run.start()
                return self._whole(function, arguments)
            except BaseException as error:
                if not is_park(error):
                    raise
                self._park()
                if not self.parked:
                    self._park_cancelled()
            raise ParkAttempt from None

        return run

    def _whole(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call the function, and undo its steps if it has failed for good."""
        failed: BaseException | None = None
        reached: BaseException | None = None
        try:
            value = function(self, **arguments)
            if self.run.parking:
                raise ParkSwallowed(self.job_id, self.run.parking[0].words)
            if not self.run.replays_only:
                self.drive(self.run.finish())
                return value
        except BaseException as error:
            reached = error
            if not self.run.replays_only:
                if is_park(error) or not self.undoes(error):
                    raise
                if not self.begin_undo(error):
                    raise
                if self.cancelled:
                    # Its worker waits for its end. An undo may take longer, so the next attempt undoes the steps.
                    self.drive(self.run.write_pending())
                    raise self.run.suspend_before_undo() from None
                failed = error
        self._undo(function, arguments, reached)
        self.end_undone(failed)
        return None

    def _undo(
        self, function: Callable[..., Any], arguments: dict[str, Any], reached: BaseException | None = None
    ) -> None:
        """Undo the steps. If some were not reached, the function is replayed first."""
        if not self.run.replays_only and self.must_replay:
            self.drive(self.run.write_pending())
            self.replay_again()
            self.run.start()
            try:
                function(self, **arguments)
            except BaseException as error:
                reached = error
        self.drive(undo_steps(self.run, reached, stops=self.undo_of is not None))

    def _park(self) -> None:
        self.flush_events()
        continues_with = self.run.continues_with
        if continues_with is None:
            (answer,) = self._sink.steps.write([self.run.park(self.begun_after)])
        else:
            answer = self._store.workflow_continue(
                self._claimed.job_id, self.attempt, continues_with, self._sink.steps.worker
            )
        if isinstance(answer, DetentError):
            raise answer
        self.parked = not isinstance(answer, CancelFound)

    def _park_cancelled(self) -> None:
        """Have the next attempt undo the steps of a workflow that was cancelled when it was about to park."""
        self.request_cancel()
        if not self.begin_undo(JobCancelled()):
            raise JobCancelled
        self.run.suspend_before_undo()
        self._park()
