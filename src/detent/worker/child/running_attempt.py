"""An attempt in progress in a child, and its time limits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from detent.model.records import Outcome
from detent.worker.attempt.attempt import Attempt
from detent.worker.attempt.history import UnknownEffect
from detent.worker.attempt.time_limits import end_overdue, limit_extension
from detent.worker.child.core import HeldJob
from detent.worker.supervisor.board import Board

if TYPE_CHECKING:
    from detent.worker.child.executors.isolated_process import IsolatedProcess

__all__ = ["ChainedCall", "RunningAttempt", "extend_deadlines"]

_isolated_lock = threading.Lock()
"""Guards `RunningAttempt.isolated`. One lock for all: it is never held for long, and a lock each would cost time in
every attempt, most of which have no process of their own."""


class ChainedCall:
    """A call on a thread that goes on to other calls afterwards. It counts as active until its attempt drops it."""

    def done(self) -> bool:
        """Return False: the thread itself tells when the call is done."""
        return False


class RunningAttempt(Struct, eq=False):
    """An attempt, what runs its function, and when it must end.

    `deadline` 0 means no limit. `in_process` says that the function was called in the child itself. `extended` is the
    time, part of the deadline already, for which other jobs may have held the process.
    """

    held: HeldJob
    attempt: Attempt
    deadline: float = 0.0
    in_process: bool = False
    cancel_by: float = 0.0
    is_stalled: bool = False
    extended: float = 0.0
    suspect: bool = False
    unknown: UnknownEffect | None = None
    work: asyncio.Task[Any] | Future[None] | ChainedCall | None = None
    isolated: IsolatedProcess | None = None

    @property
    def is_active(self) -> bool:
        """Whether the function has not returned yet."""
        return self.work is not None and not self.work.done()

    def set_called(self, board: Board, now: float, *, in_process: bool) -> None:
        """Note that the function is called now: its time-out counts from here. The caller holds the runner's lock."""
        held, timeout = self.held, self.attempt.task.options.timeout
        held.called_at = now
        board.set_called(held, now - held.claimed_at)
        if timeout is not None:
            self.deadline, self.extended = now + timeout, 0.0
            board.set_deadline(held, self.deadline)
        if in_process:
            board.set_in_process(held)
            self.in_process = True

    def find_overdue(self, now: float) -> tuple[Outcome, str, bool] | None:
        """Return the outcome and the error with which to cut the attempt short, and whether its job is a suspect.

        None means that it may go on."""
        options, is_workflow = self.attempt.task.options, self.attempt.task.workflow is not None
        if options.timeout is not None and self.deadline and now >= self.deadline:
            return end_overdue(options.timeout, self.extended, idempotent=options.idempotent)
        if self.is_stalled:
            return "timed_out", "stalled: wrote no event for too long", False
        if self.cancel_by and now >= self.cancel_by:
            # If it must not be repeated blindly, it is unknown how far it got. A workflow may have steps to undo: then
            # another attempt undoes them before the job is cancelled.
            ended: Outcome = "released" if is_workflow else "cancelled"
            outcome = ended if options.idempotent else "crashed"
            return outcome, "did not stop within the grace period after a cancel", False
        return None

    def request_stop(self) -> None:
        """Tell the function to stop; it may ignore that."""
        self.attempt.context.request_cancel()
        with _isolated_lock:
            if self.isolated is not None:
                self.isolated.cancel(self.held.claimed)

    def stop(self) -> None:
        """Stop the function as hard as possible. A function on a thread can only be told. Called on the event loop."""
        self.request_stop()
        with _isolated_lock:
            if self.isolated is not None:
                self.isolated.kill()
        if isinstance(self.work, asyncio.Task):
            self.work.cancel()

    def release_isolated(self) -> None:
        """Forget the isolated process: it has done its part, and may be running another job soon."""
        with _isolated_lock:
            self.isolated = None


def extend_deadlines(
    running: Mapping[HeldJob, RunningAttempt], board: Board, held_for: float, *, abandoned: int
) -> None:
    """Extend the deadlines of attempts whose process was held for `held_for` seconds.

    `abandoned` counts the functions that go on although their attempts have ended. A function that is the only one in
    its process holds the process itself and gets no extension. The caller holds the runner's lock.
    """
    if not held_for:
        return
    in_process = sum(one.in_process for one in running.values()) + abandoned
    for held, one in running.items():
        timeout = one.attempt.task.options.timeout
        if timeout is not None and one.deadline and in_process > one.in_process:
            extra = limit_extension(timeout, one.extended, held_for)
            one.extended += extra
            one.deadline += extra
            board.set_deadline(held, one.deadline)
