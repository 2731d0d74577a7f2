"""Shows a supervisor that the threads of its child get their turns: not so while a function holds the interpreter."""

from __future__ import annotations

from detent.model.clock import Clock
from detent.worker.supervisor.board import Board

__all__ = ["beat"]

_EVERY_MAX = 1.0


def beat(board: Board, clock: Clock, every: float) -> None:
    """Write the time to the board every so many seconds, at most one second isolation, for ever."""
    while True:
        board.beat(clock.monotonic())
        clock.sleep(min(_EVERY_MAX, every))
