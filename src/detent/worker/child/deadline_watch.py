"""Ends attempts that run longer than they may, and notices functions that do not stop."""

from __future__ import annotations

from detent.model.records import Outcome
from detent.worker.attempt.endings import end_attempt
from detent.worker.attempt.time_limits import LoopLag
from detent.worker.child.runner import Runner
from detent.worker.child.running_attempt import RunningAttempt, extend_deadlines
from detent.worker.supervisor.board import Board

__all__ = ["DeadlineWatch"]


class DeadlineWatch:
    """Checks the running attempts every `tick` seconds, on the loop."""

    def __init__(self, runner: Runner, board: Board, *, tick: float, cancel_grace: float) -> None:
        self._runner = runner
        self._board = board
        self._cancel_grace = cancel_grace
        self._lag = LoopLag(tick)
        self._abandoned: list[tuple[RunningAttempt, float]] = []
        self.is_hung = False
        """Whether a function went on for longer than the grace period after its attempt was cut short."""

    @property
    def has_abandoned(self) -> bool:
        """Whether a function goes on although its attempt was cut short."""
        return bool(self._abandoned)

    def restart(self, now: float) -> None:
        """Start watching after a time in which nothing ran."""
        self._lag.restart(now)

    def check(self, now: float) -> None:
        """Extend deadlines if the loop was held, and cut short what is overdue."""
        runner = self._runner
        with runner.lock:
            extend_deadlines(runner.running, self._board, self._lag.measure(now), abandoned=len(self._abandoned))
        for running in list(runner.running.values()):
            if (overdue := running.find_overdue(now)) is not None:
                self._cut_short(running, *overdue, now)
        self._abandoned = [(running, until) for running, until in self._abandoned if running.is_active]
        self.is_hung = self.is_hung or any(now >= until for _, until in self._abandoned)

    def _cut_short(self, running: RunningAttempt, outcome: Outcome, error: str, suspect: bool, now: float) -> None:
        """End the attempt, whether its function ends or not. A process is killed and an async function is cancelled. A
        thread can only be told to stop: if it does not within the grace period, the child counts as hung."""
        delay = 0.0 if outcome == "released" else running.attempt.retry_delay()
        if self._runner.end(running.held, end_attempt(running.held.claimed, outcome, error, delay, suspect=suspect)):
            running.stop()
            self._abandoned.append((running, now + self._cancel_grace))
