"""Polling with growing pauses: until a condition holds, and for the events of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from detent.declare.settings import Settings
from detent.errors import DetentError, InvalidInput, NotFound
from detent.lifecycle.library import JOB
from detent.model.clock import Clock
from detent.model.records import EventRow
from detent.store.contract import Verbs

__all__ = ["event_pages", "items_of", "pauses_until", "sleep_through"]

T = TypeVar("T")

_FIRST_PAUSE = 0.01
_PAGE = 500


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


def event_pages(
    verbs: Verbs, job_id: int, settings: Settings, *, follow: bool, after_seq: int = 0
) -> Iterator[tuple[list[EventRow], float]]:
    """Yield the events of a job in order, page by page, each page with the pause before the next one should be read.

    With `follow` this goes on until the job has ended. `NotFound`.
    """
    pause = _FIRST_PAUSE
    while True:
        (row,) = verbs.job_get([job_id])
        if row is None:
            raise NotFound("job", str(job_id))
        lines = verbs.job_events(job_id, after_seq, _PAGE)
        after_seq = lines[-1].seq if lines else after_seq
        # The row was read before the events, so no event of a job that has ended is missed.
        if len(lines) < _PAGE and (not follow or row.state in JOB.rests):
            yield lines, 0.0
            return
        pause = _FIRST_PAUSE if lines else min(pause * 1.5, settings.wait_poll)
        yield lines, 0.0 if len(lines) == _PAGE else pause
