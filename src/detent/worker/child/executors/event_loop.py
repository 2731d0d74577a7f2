"""Runs async functions on the event loop of a child."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from detent.model import fork_count
from detent.worker.attempt.attempt import Attempt
from detent.worker.attempt.coroutine_driver import SuspendedCoroutine
from detent.worker.attempt.endings import Ending
from detent.worker.child.running_attempt import RunningAttempt

__all__ = ["EventLoopExecutor"]


class EventLoopExecutor:
    """Calls async functions, either inside the caller's task or in a task of their own. All on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._forks = fork_count.count

    def call_inline(self, attempt: Attempt) -> Ending | SuspendedCoroutine:
        """Call the function inside the current task. Return how it ended, or the coroutine if it waits; the same task
        then has to await `attempt.resume`."""
        return attempt.start(self._forks)

    def submit(self, running: RunningAttempt, end: Callable[[RunningAttempt, Ending], None]) -> None:
        """Call the function in a task of its own, and then call `end` with how it ended."""
        task = self._loop.create_task(running.attempt.run_async(self._forks))
        running.work = task
        # A cancelled task was cut short: its attempt has ended already.
        task.add_done_callback(lambda done: end(running, None if done.cancelled() else done.result()))
