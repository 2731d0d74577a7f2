"""Runs plain functions on the threads of a child."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from detent.model.stored_text import error_text
from detent.worker.attempt.attempt import Attempt
from detent.worker.attempt.endings import Ending, end_attempt
from detent.worker.child.core import HeldJob
from detent.worker.child.executors.switch_interval import SwitchInterval
from detent.worker.child.running_attempt import RunningAttempt

__all__ = ["ThreadExecutor"]


class ThreadExecutor:
    """A pool with one thread per slot."""

    def __init__(self, slots: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=slots, thread_name_prefix="detent-job")
        self._switch_interval = SwitchInterval()

    def submit_step(self, running: RunningAttempt, step: Callable[[RunningAttempt], None]) -> None:
        """Take a step with an attempt on a thread: prepare it, run it, or both."""
        running.work = self._pool.submit(step, running)

    def run(
        self, running: RunningAttempt, run: Callable[[], Ending], end: Callable[[RunningAttempt, Ending], None]
    ) -> None:
        """Call `run` on the current thread, and then `end` with what it returned. It may block for as long as it
        likes."""
        _run(running, run, end)

    def submit_chain(
        self,
        held: HeldJob,
        attempt: Attempt,
        *,
        begin: Callable[[HeldJob, Attempt], RunningAttempt | None],
        end: Callable[[RunningAttempt, Ending], None],
        next_like: Callable[[Attempt], tuple[HeldJob, Attempt] | None],
    ) -> None:
        """Call a function on a thread, and then whatever `next_like` gives on the same thread.

        By way of the loop, each call would wait for two other threads to get a turn.
        """
        self._pool.submit(self.run_chain, held, attempt, begin=begin, end=end, next_like=next_like)

    def run_chain(
        self,
        held: HeldJob,
        attempt: Attempt,
        *,
        begin: Callable[[HeldJob, Attempt], RunningAttempt | None],
        end: Callable[[RunningAttempt, Ending], None],
        next_like: Callable[[Attempt], tuple[HeldJob, Attempt] | None],
    ) -> None:
        """Do the same on the current thread."""
        following: tuple[HeldJob, Attempt] | None = held, attempt
        with self._switch_interval.for_threads():
            while following is not None:
                held, attempt = following
                running = begin(held, attempt)
                if running is not None:
                    _run(running, attempt.run, end)
                    running.work = None
                following = next_like(attempt)


def _run(running: RunningAttempt, run: Callable[[], Ending], end: Callable[[RunningAttempt, Ending], None]) -> None:
    """Run the attempt and end it, even if something around the function fails."""
    if running.held.ended:
        return
    ending: Ending
    try:
        ending = run()
    except BaseException as error:
        ending = end_attempt(running.held.claimed, "error", error_text(error), running.attempt.retry_delay())
    end(running, ending)
