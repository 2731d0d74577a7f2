"""Waiting by polling with growing pauses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from detent.declare.settings import Settings
from detent.errors import DetentError, InvalidInput
from detent.model.clock import Clock

__all__ = ["items_of", "pauses_until", "sleep_through"]

T = TypeVar("T")

_FIRST_PAUSE = 0.01


def pauses_until(
    is_done: Callable[[], bool],
    timeout: float | None,
    clock: Clock,
    settings: Settings,
    late: Callable[[float], DetentError],
    first: float = _FIRST_PAUSE,
) -> Iterator[float]:
    """Check, and yield how long to pause before the next check, until `is_done` is true. After `timeout` seconds raise
    what `late` makes of the seconds waited. `InvalidInput`."""
    if timeout is not None and not timeout >= 0:
        raise InvalidInput("timeout", repr(timeout), "zero or more seconds, or None for as long as it takes")
    begun, pause = clock.monotonic(), first
    while not is_done():
        waited = clock.monotonic() - begun
        if timeout is not None and waited >= timeout:
            raise late(waited)
        yield pause if timeout is None else min(pause, timeout - waited)
        pause = min(pause * 1.5, settings.wait_poll)


def sleep_through(pauses: Iterable[float], clock: Clock) -> None:
    """Sleep for each pause in turn."""
    for pause in pauses:
        clock.sleep(pause)


def items_of(pages: Iterable[tuple[list[T], float]], clock: Clock) -> Iterator[T]:
    """Yield the items of all pages in turn, and sleep as long as each page says before the next one is read."""
    for items, pause in pages:
        yield from items
        if pause:
            clock.sleep(pause)
