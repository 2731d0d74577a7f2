"""Waiting and reading page by page, without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

from detent.model.clock import Clock, SystemClock

__all__ = ["aitems_of", "asleep_through"]

T = TypeVar("T")


async def asleep_through(pauses: Iterator[float], clock: Clock) -> None:
    """Sleep for each pause in turn. The iterator reads the database, so it is advanced on a thread."""
    while (pause := await asyncio.to_thread(next, pauses, None)) is not None:
        await _sleep(pause, clock)


async def aitems_of(pages: Iterator[tuple[list[T], float]], clock: Clock) -> AsyncIterator[T]:
    """Yield the items of all pages in turn. Each page is read on a thread."""
    while (page := await asyncio.to_thread(next, pages, None)) is not None:
        items, pause = page
        for item in items:
            yield item
        await _sleep(pause, clock)


async def _sleep(seconds: float, clock: Clock) -> None:
    if isinstance(clock, SystemClock):
        await asyncio.sleep(seconds)
    elif seconds:
        await asyncio.to_thread(clock.sleep, seconds)
