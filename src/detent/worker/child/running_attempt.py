"""A job in progress in a child."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from detent.worker.attempt.attempt import Attempt
from detent.worker.attempt.history import Unknown
from detent.worker.child.core import Held

if TYPE_CHECKING:
    from detent.worker.child.isolated_process import IsolatedProcess

__all__ = ["OnThread", "RunningAttempt"]


class OnThread:
    """A function that is called on a thread which goes on to others: it goes on until `RunningAttempt` forgets it."""

    def done(self) -> bool:
        """It is forgotten when it is."""
        return False


@dataclass(eq=False, slots=True)
class RunningAttempt:
    """An attempt, where it runs, and by when it must end; 0 is no limit. `forgiven` is time, in the deadline already,
    for which other jobs may have held the process. `here`: its function was called in this process."""

    held: Held
    attempt: Attempt
    deadline: float = 0.0
    cancel_by: float = 0.0
    is_stalled: bool = False
    forgiven: float = 0.0
    here: bool = False
    suspect: bool = False
    unknown: Unknown | None = None
    work: asyncio.Task[Any] | Future[None] | OnThread | None = None
    solo: IsolatedProcess | None = None
    _solo_lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def still_at_it(self) -> bool:
        """Whether the function goes on."""
        return self.work is not None and not self.work.done()

    def ask_to_stop(self) -> None:
        """Tell the function, which may listen or not."""
        self.attempt.context.request_cancel()
        with self._solo_lock:
            if self.solo is not None:
                self.solo.cancel(self.held.claimed)

    def leave_solo(self) -> None:
        """The process has done its part: from now on it is not this job's to stop."""
        with self._solo_lock:
            self.solo = None

    def stop(self) -> None:
        """Stop it as hard as is possible from here. On the loop."""
        self.ask_to_stop()
        with self._solo_lock:
            if self.solo is not None:
                self.solo.kill()
        if isinstance(self.work, asyncio.Task):
            self.work.cancel()
