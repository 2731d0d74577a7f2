"""A job in progress in a child."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from detent.worker.attempt import Attempt
from detent.worker.core import Held

if TYPE_CHECKING:
    from detent.worker.solos import Solo

__all__ = ["Running"]


@dataclass(eq=False, slots=True)
class Running:
    """An attempt, where it runs, and by when it must end; 0 is no limit."""

    held: Held
    attempt: Attempt
    deadline: float = 0.0
    cancel_by: float = 0.0
    line: int | None = None
    suspect: bool = False
    work: asyncio.Task[Any] | Future[None] | None = None
    solo: Solo | None = None

    @property
    def still_at_it(self) -> bool:
        """Whether the function goes on."""
        return self.work is not None and not self.work.done()

    def ask_to_stop(self) -> None:
        """Tell the function, which may listen or not."""
        self.attempt.context.request_cancel()
        if self.solo is not None:
            self.solo.cancel(self.held.claimed)

    def stop(self) -> None:
        """Stop it as hard as is possible from here. On the loop."""
        self.ask_to_stop()
        if self.solo is not None:
            self.solo.kill()
        elif isinstance(self.work, asyncio.Task):
            self.work.cancel()
