"""Checks of every request before it reaches a route: its host, and where it comes from.

A page of another site can make a browser send requests to a server on this machine. The server answers only under names
that it knows (against DNS rebinding), and refuses changes that come from another origin.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from detent.http.problems import refuse

__all__ = ["LOOPBACK", "RequestChecks"]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SAFE = ("GET", "HEAD", "OPTIONS")
_QUERY_MAX = 16 * 1024
_HEADERS_MAX = 32 * 1024
_HEADERS = (
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class RequestChecks:
    """ASGI middleware that refuses requests under unknown host names and changes from other origins."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in (*LOOPBACK, *hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        send = _with_headers(send)
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host = headers.get("host", "")
            if _name(host) not in self._hosts:
                answer = refuse(421, f"this server is not reached as {host[:80]!r}; allow the name with --allow-host")
                return await answer(scope, receive, send)
            if scope["method"] not in _SAFE and (origin := _foreign_origin(headers, host)) is not None:
                answer = refuse(403, f"a change from another origin, {origin[:80]!r}, is refused")
                return await answer(scope, receive, send)
            if (too_long := _too_long(scope)) is not None:
                return await too_long(scope, receive, send)
        return await self._app(scope, receive, send)


def _foreign_origin(headers: Headers, host: str) -> str | None:
    """Return where a request comes from if that is another origin, as browsers say; None otherwise."""
    origin = headers.get("origin")
    if origin is not None and _host_of(origin) != host.lower():
        return origin
    site = headers.get("sec-fetch-site", "same-origin")
    return None if site in ("same-origin", "none") else site


def _host_of(origin: str) -> str:
    """Return the host and port of an origin; an empty text if it has none or cannot be read."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _too_long(scope: Scope) -> Response | None:
    if len(scope["query_string"]) > _QUERY_MAX:
        return refuse(414, f"the query has {len(scope['query_string'])} bytes; at most {_QUERY_MAX} are allowed")
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size > _HEADERS_MAX:
        return refuse(431, f"the headers have {size} bytes; at most {_HEADERS_MAX} are allowed")
    return None


def _with_headers(send: Send) -> Send:
    """Return a `send` that adds headers to every answer: browsers must not guess its type, nor show it in a frame."""

    async def send_with(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            # The console has a content policy of its own.
            message["headers"] = [*given, *((name, value) for name, value in _HEADERS if name not in names)]
        await send(message)

    return send_with


def _name(host: str) -> str:
    """Return the name in a `Host` header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
