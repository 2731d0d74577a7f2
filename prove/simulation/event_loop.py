"""An asyncio event loop that waits in virtual time and gives up its turn while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from prove.simulation.world import world

__all__ = ["VirtualLoop", "run"]


class _Selector:
    """Has no files to watch: it waits for the time, or for a call from another actor."""

    def __init__(self) -> None:
        self.is_woken = False

    def select(self, timeout: float | None) -> list[Any]:
        if not self.is_woken and timeout != 0:
            world().block(lambda: self.is_woken, timeout)
        self.is_woken = False
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop of a simulated process."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector()

    def time(self) -> float:
        """Return the virtual time."""
        return world().clock.monotonic()

    def _write_to_self(self) -> None:
        self._selector.is_woken = True

    def _process_events(self, event_list: list[Any]) -> None:
        pass


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine as `asyncio.run` does, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
