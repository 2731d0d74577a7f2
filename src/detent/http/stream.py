"""`GET /api/v1/stream`: what happens, as Server-Sent Events."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from detent.app.detent import Detent
from detent.client.job_verbs import check_id
from detent.errors import DetentError, InvalidInput
from detent.http.arguments import read_query
from detent.http.callers import Caller, caller_of, caller_still_valid
from detent.http.problems import refuse
from detent.http.stream_hub import Channel, StreamHub
from detent.http.stream_message import HEARTBEAT, control, message, place_only, reconnect_after
from detent.http.stream_places import Page, Place
from detent.http.stream_sources import JobSource, RecordSource, RunSource, Source
from detent.ops.ops_run import read_run_id

__all__ = ["StreamArguments", "stream_endpoint"]

log = logging.getLogger("detent.server")

_HEARTBEAT_SECONDS = 15.0
_CHECK_SECONDS = 4.0
"""Seconds between two checks whether the caller's token is still valid."""
_SEND_SECONDS_MAX = 30.0
"""Seconds that a client may take to accept a message."""
_STOP_SECONDS_MAX = 0.5
_RECONNECT_MILLISECONDS = 1000
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class StreamArguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to follow: a job, a run, an ops run, or the record if none is named."""

    job: str | None = None
    run: str | None = None
    ops: str | None = None
    follow: bool = False
    """Stay after the job or run has come to rest: someone may retry it."""
    after: str | None = None
    """As the header `Last-Event-ID`, for the first connection of a browser."""


def stream_endpoint(app: Detent, hub: StreamHub) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint."""

    async def stream(request: Request) -> Response:
        given = StreamArguments(**read_query(request.query_params, StreamArguments))
        caller = caller_of(request)
        source = _source(app, given, caller)
        last = request.headers.get("last-event-id") or given.after
        place = source.parse(last) if last else source.beginning()
        if (refused := _refuse(hub, caller)) is not None:
            return refused
        end = await hub.read(source.end)
        return EventStream(hub, source, place or end, end, request, follows=given.follow)

    return stream


def _source(app: Detent, given: StreamArguments, caller: Caller) -> Source:
    named = [name for name in ("job", "run", "ops") if getattr(given, name) is not None]
    if len(named) > 1:
        raise InvalidInput("stream", " and ".join(named), "one of job, run and ops, or none of them for the record")
    if given.job is not None:
        return JobSource(app, check_id(given.job, "job id"), caller.tenant)
    if given.ops is not None:
        return JobSource(app, read_run_id(given.ops), caller.tenant)
    if given.run is not None:
        return RunSource(app, str(check_id(given.run, "run id")), caller.tenant)
    return RecordSource(app)


def _refuse(hub: StreamHub, caller: Caller) -> Response | None:
    """Return the refusal of one more stream; None if there is room."""
    if hub.stopping.is_set():
        return _later(503, "the server is stopping")
    if hub.is_full:
        return _later(503, f"this server has {hub.streams_max} open streams, and takes no more")
    if not hub.room_for(caller.token_id):
        return _later(429, f"this token has {hub.streams_per_token_max} open streams, and may have no more")
    return None


def _later(status: int, detail: str) -> Response:
    answer = refuse(status, detail)
    answer.headers["Retry-After"] = "5"
    return answer


class EventStream(Response):
    """The answer that does not end: messages until the client goes, the subject has ended, the token is not valid any
    more, or the server stops."""

    def __init__(
        self,
        hub: StreamHub,
        source: Source,
        place: Place,
        end: Place,
        request: Request,
        *,
        follows: bool,
    ) -> None:
        super().__init__()
        self._hub = hub
        self._source = source
        self._place = place
        self._end = end
        self._request = request
        self._caller = caller_of(request)
        self._follows = follows
        self._snapshot: bytes | None = None
        self._counts_version = 0
        self._is_of_record = isinstance(source, RecordSource)
        self._sent_place = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages."""
        # Others may have been opened while the database was read.
        if (refused := _refuse(self._hub, self._caller)) is None:
            await self._send_all(receive, send)
        else:
            await refused(scope, receive, send)

    async def _send_all(self, receive: Receive, send: Send) -> None:
        token_id = self._caller.token_id
        self._hub.open(token_id)
        tasks = [
            asyncio.create_task(self._write(send)),
            asyncio.create_task(_disconnected(receive)),
            asyncio.create_task(self._hub.stopping.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._hub.stopping.is_set():
                await asyncio.wait(tasks[:1], timeout=_STOP_SECONDS_MAX)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._hub.close(token_id)
        if not tasks[0].cancelled() and (error := tasks[0].exception()) is not None:
            raise error

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        channel = self._hub.join(self._source, self._end)
        if self._is_of_record:
            self._hub.watch_counts(self._caller.tenant, 1)
        try:
            async for part in self._messages(channel):
                async with asyncio.timeout(_SEND_SECONDS_MAX):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
        except TimeoutError:
            return  # the client takes nothing; it continues after its last id when it reconnects
        except DetentError as error:
            log.warning("A stream ends, since the database cannot be read: %s", error)
        finally:
            self._hub.leave(channel)
            if self._is_of_record:
                self._hub.watch_counts(self._caller.tenant, -1)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _messages(self, channel: Channel) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        yield reconnect_after(_RECONNECT_MILLISECONDS) + self._new_place()
        # The serial is taken before the database is read: pages that are published meanwhile are looked at later.
        serial, is_behind = channel.serial, True
        sent_at = checked_at = loop.time()
        while not self._hub.stopping.is_set():
            if loop.time() - checked_at >= _CHECK_SECONDS:
                if not await caller_still_valid(self._request):
                    yield control("end", reason="the token was revoked or has expired")
                    return
                checked_at = loop.time()
            if is_behind:
                serial = channel.serial
                pages = [await self._hub.read(functools.partial(self._source.read, self._place))]
                is_behind = pages[0].more
            else:
                kept = channel.since(serial)
                serial = channel.serial
                if kept is None:
                    is_behind = True
                    continue
                pages = list(kept)
            part = b"".join([*(text for page in pages for text in self._texts(page)), *self._counts()])
            if part:
                sent_at = loop.time()
                yield part
            if pages and (reason := self._reason_to_end(pages[-1], is_behind=is_behind)):
                yield control("end", reason=reason)
                return
            if pages:
                continue
            pause = sent_at + _HEARTBEAT_SECONDS - loop.time()
            if pause <= 0:
                sent_at = loop.time()
                yield self._new_place() or HEARTBEAT
                continue
            await channel.wait(min(pause, _CHECK_SECONDS))

    def _texts(self, page: Page) -> list[bytes]:
        """Return the messages of a page that this subscriber has not seen, and note that it has."""
        found: list[bytes] = []
        if page.reset:
            found.append(control("reset", reason=page.reset))
        if page.restart is not None:
            self._place = page.restart
            found.append(self._new_place())
        for item in page.items:
            if self._place.wants(item):
                self._place = self._place.past(item, page)
                if not self._is_of_record or self._caller.tenant in (None, item.tenant):
                    self._sent_place = self._place.text
                    found.append(message(item.event, item.data, self._sent_place))
        self._place = self._place.through(page)
        if page.snapshot is not None and page.snapshot != self._snapshot:
            self._snapshot = page.snapshot
            found.append(message("run", page.snapshot))
        return found

    def _counts(self) -> list[bytes]:
        """Return the counts if they have changed."""
        if not self._is_of_record or self._counts_version == self._hub.counts_version:
            return []
        self._counts_version = self._hub.counts_version
        body = self._hub.counts_body(self._caller.tenant)
        return [] if body is None else [message("counts", body)]

    def _new_place(self) -> bytes:
        """Return the place if the client does not know it: lines may have passed that it may not see."""
        if self._place.text == self._sent_place:
            return b""
        self._sent_place = self._place.text
        return place_only(self._sent_place)

    def _reason_to_end(self, page: Page, *, is_behind: bool) -> str:
        if page.gone:
            return "it was deleted"
        return "it has come to rest" if page.ended and not self._follows and not is_behind else ""


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
