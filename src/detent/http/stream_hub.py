"""One poller for all streams of a process. It looks for new lines of every subject that is followed, once for all its
subscribers, and keeps the last pages of each. Subscribers take them at their own speed; one that is too slow for the
pages that are kept reads the database itself. So a slow client costs no memory."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import msgspec

from detent.app.detent import Detent
from detent.errors import DetentError
from detent.http.bodies import encode
from detent.http.stream_places import Page, Place
from detent.http.stream_sources import JobSource, RecordSource, Source
from detent.model.follow_records import JobMark
from detent.model.records import Count
from detent.model.service_records import QueueDepth

__all__ = ["Channel", "StreamHub"]

log = logging.getLogger("detent.server")

_PAGES_KEPT = 32
_READERS_MAX = 4
"""Reads of the database at once on behalf of subscribers that are behind."""
_TICK = 0.25
_COUNTS_INTERVAL = 1.0
_COUNTS_SHARE = 50
"""Counting jobs may take at most 1/50 of the time."""
_MARKS_MAX = 500
_FAILURE_PAUSE = 2.0

T = TypeVar("T")


class Channel:
    """A subject that is followed: the last pages of lines, and who waits for more."""

    def __init__(self, source: Source, place: Place) -> None:
        self.source = source
        self.place = place
        """How far the poller has read."""
        self.subscribers = 0
        self.serial = 0
        """The number of the newest page."""
        self.due = 0.0
        self.is_failing = False
        self.mark: JobMark | None = None
        self._last = Page()
        self._pages: deque[Page] = deque(maxlen=_PAGES_KEPT)
        self._changed = asyncio.Event()

    def publish(self, page: Page) -> None:
        """Add a page and wake the subscribers, if anything is new in it."""
        last, self._last = self._last, page
        is_news = page.snapshot != last.snapshot or page.ended != last.ended
        if not (page.items or page.reset or page.gone or is_news):
            return
        self.serial += 1
        self._pages.append(page)
        self.wake()

    def wake(self) -> None:
        """Wake the subscribers."""
        self._changed.set()
        self._changed = asyncio.Event()

    def since(self, serial: int) -> Sequence[Page] | None:
        """Return the pages after one; None if some of them are no longer kept."""
        new = self.serial - serial
        return None if new > len(self._pages) else list(self._pages)[len(self._pages) - new :]

    async def wait(self, seconds: float) -> None:
        """Wait for something new, or for so long."""
        changed = self._changed
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            pass


class StreamHub:
    """The channels of a process, the poller, and the counts."""

    streams_max = 1000
    """Maximum number of open streams."""
    streams_per_token_max = 250

    def __init__(self, app: Detent) -> None:
        self._app = app
        self._channels: dict[str, Channel] = {}
        self._streams: Counter[int | None] = Counter()
        self._poller: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: anyio.CapacityLimiter | None = None
        self._poll_limiter: anyio.CapacityLimiter | None = None
        self._depths: list[QueueDepth] | None = None
        self._counts: list[Count] = []
        self._counts_due = 0.0
        self._tenants: Counter[str] = Counter()
        self._count_bodies: dict[str | None, bytes] = {}
        self.counts_version = 0
        self.stopping = asyncio.Event()
        """Set when all streams are to end."""

    def stop(self) -> None:
        """End all streams, and accept no more. Called by a signal handler, or on any thread."""
        if self._loop is None or self._loop.is_closed():
            self.stopping.set()
        else:
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self.stopping.set()
        for channel in self._channels.values():
            channel.wake()

    def room_for(self, token_id: int | None) -> bool:
        """Return whether this token may open one more stream."""
        return token_id is None or self._streams[token_id] < self.streams_per_token_max

    @property
    def is_full(self) -> bool:
        """Whether the process has as many streams as it may."""
        return self._streams.total() >= self.streams_max

    def open(self, token_id: int | None) -> None:
        """Count a stream."""
        self._use_running_loop()
        self._streams[token_id] += 1

    def close(self, token_id: int | None) -> None:
        """Count a stream no longer."""
        self._streams[token_id] -= 1
        self._streams += Counter()

    def join(self, source: Source, place: Place) -> Channel:
        """Return the channel of a subject, with one more subscriber. A new one starts at `place`."""
        self._use_running_loop()
        channel = self._channels.get(source.key)
        if channel is None:
            channel = self._channels[source.key] = Channel(source, place)
        channel.subscribers += 1
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        return channel

    def leave(self, channel: Channel) -> None:
        """Take a subscriber away. A channel without subscribers ends."""
        channel.subscribers -= 1
        if not channel.subscribers and self._channels.get(channel.source.key) is channel:
            del self._channels[channel.source.key]

    async def read(self, reading: Callable[[], T]) -> T:
        """Read the database on a thread. Few do so at once."""
        self._use_running_loop()
        return await anyio.to_thread.run_sync(reading, limiter=self._readers)

    def watch_counts(self, tenant: str | None, change: int) -> None:
        """Note that one more (1) or one less (-1) subscriber wants the counts of a tenant, or of all."""
        if tenant is not None:
            self._tenants[tenant] += change
            self._tenants += Counter()
            self._counts_due = 0.0

    def counts_body(self, tenant: str | None) -> bytes | None:
        """Return the counts of jobs by queue and state as JSON, of one tenant or of all; None if not counted yet."""
        if self._depths is None:
            return None
        if tenant not in self._count_bodies:
            counts = self._depths if tenant is None else [one for one in self._counts if one.tenant == tenant]
            self._count_bodies[tenant] = encode(_by_queue(counts))
        return self._count_bodies[tenant]

    def _use_running_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._channels, self._poller = {}, None
            self._streams.clear()
            if not self.stopping.is_set():
                self.stopping = asyncio.Event()
            self._readers, self._poll_limiter = anyio.CapacityLimiter(_READERS_MAX), anyio.CapacityLimiter(1)

    async def _poll(self) -> None:
        failed = False
        while self._channels and not self.stopping.is_set():
            try:
                await self._look()
                pause, failed = _TICK, False
            except DetentError as error:
                if not failed:
                    log.warning("Streams wait, since the database cannot be read: %s", error)
                pause, failed = _FAILURE_PAUSE, True
            except Exception:  # the streams stay open, and the next look may succeed
                log.exception("Streams wait, since the poller failed.")
                pause, failed = _FAILURE_PAUSE, True
            await asyncio.sleep(pause)

    async def _look(self) -> None:
        """Look once for what is new about each subject whose time has come."""
        now = asyncio.get_running_loop().time()
        due = [channel for channel in self._channels.values() if channel.due <= now]
        jobs = [channel for channel in due if isinstance(channel.source, JobSource)]
        if jobs:
            marks = await self._in_turn(functools.partial(self._read_marks, [_job_id(one) for one in jobs]))
            for channel, mark in zip(jobs, marks, strict=True):
                if mark is not None and mark == channel.mark:
                    due.remove(channel)
                channel.mark = mark
        failures = 0
        for channel in due:
            channel.due = now + channel.source.interval - _TICK / 2
            try:
                await self._read_new(channel)
            except Exception as error:
                # A damaged row, for instance: the other streams go on. If all fail, the database does.
                failures += 1
                if failures == len(due):
                    raise
                channel.due = now + _FAILURE_PAUSE
                if not channel.is_failing:
                    log.warning("The stream of %s waits, since it cannot be read: %s", channel.source.key, error)
                channel.is_failing = True
            else:
                channel.is_failing = False
        record = self._channels.get(RecordSource.key)
        if record is not None and now >= self._counts_due:
            await self._count(record)

    async def _read_new(self, channel: Channel) -> None:
        place = channel.place
        page = await self._in_turn(functools.partial(channel.source.read, place))
        if page.restart is None:
            for item in page.items:
                place = place.past(item, page)
            channel.place = place.through(page)
            # The poller looks all the time: retention was not faster than it.
            page = msgspec.structs.replace(page, reset="")
        else:
            channel.place = page.restart
        if page.more:
            channel.due, channel.mark = 0.0, None
        channel.publish(page)

    async def _count(self, record: Channel) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        depths = await self._in_turn(self._app.store.queue_depths)
        counts = await self._in_turn(self._app.store.counts) if self._tenants else []
        took = loop.time() - begun
        self._counts_due = begun + max(_COUNTS_INTERVAL, _COUNTS_SHARE * took)
        if (depths, counts) != (self._depths, self._counts):
            self._depths, self._counts, self._count_bodies = depths, counts, {}
            self.counts_version += 1
            record.wake()

    def _read_marks(self, ids: Sequence[int]) -> list[JobMark | None]:
        found: list[JobMark | None] = []
        for first in range(0, len(ids), _MARKS_MAX):
            found += self._app.store.job_marks(ids[first : first + _MARKS_MAX])
        return found

    async def _in_turn(self, reading: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(reading, limiter=self._poll_limiter)


def _job_id(channel: Channel) -> int:
    assert isinstance(channel.source, JobSource)
    return channel.source.job_id


def _by_queue(counts: Sequence[Count] | Sequence[QueueDepth]) -> dict[str, Any]:
    queues: dict[str, dict[str, int]] = {}
    for one in counts:
        queues.setdefault(one.queue, {})[one.state] = one.jobs
    return {"queues": queues}
