"""How somebody waits for something to come about: by looking again, ever less often."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from detent.declare.settings import Settings
from detent.errors import DetentError, InvalidInput
from detent.model.clock import Clock

__all__ = ["pauses_until"]

_FIRST_PAUSE = 0.01


def pauses_until(
    look: Callable[[], bool],
    timeout: float | None,
    clock: Clock,
    settings: Settings,
    late: Callable[[float], DetentError],
) -> Iterator[float]:
    """Each step looks and says how long to pause, until it has come about; after `timeout` seconds `late` is raised."""
    if timeout is not None and not timeout >= 0:
        raise InvalidInput("timeout", repr(timeout), "zero or more seconds, or None for as long as it takes")
    begun, pause = clock.monotonic(), _FIRST_PAUSE
    while not look():
        waited = clock.monotonic() - begun
        if timeout is not None and waited >= timeout:
            raise late(waited)
        yield pause if timeout is None else min(pause, timeout - waited)
        pause = min(pause * 1.5, settings.wait_poll)
