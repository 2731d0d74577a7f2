"""Finds the caller of every request before it reaches a route, and refuses requests without a valid token."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from detent.http.callers import Caller, Callers
from detent.http.problems import refuse
from detent.http.public_paths import is_public, path_below_mount
from detent.http.session_cookie import drop_cookie, read_cookie

__all__ = ["Authentication", "token_required"]

_SAFE = ("GET", "HEAD", "OPTIONS")
_FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip")


class Authentication:
    """ASGI middleware: `request.state.caller` is the caller. Only public paths are reached without one."""

    def __init__(self, app: ASGIApp, callers: Callers) -> None:
        self._app = app
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller, or refuse it."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await refuse(403, "only HTTP requests are answered")(scope, receive, send)
        if is_public(scope["method"], path_below_mount(scope)):
            return await self._app(scope, receive, send)
        found = await self._find(scope)
        if isinstance(found, Response):
            return await found(scope, receive, send)
        scope.setdefault("state", {})["caller"] = found
        return await self._app(scope, receive, send)

    async def _find(self, scope: Scope) -> Caller | Response:
        headers = Headers(scope=scope)
        bearer = headers.get("authorization")
        if bearer is not None:
            kind, _, token = bearer.partition(" ")
            caller = await self._callers.find_token(token.strip()) if kind.lower() == "bearer" else None
            return caller or token_required("the token is unknown, expired or revoked")
        if (cookie := read_cookie(headers)) is not None:
            caller = await self._callers.find_token(cookie)
            if caller is None:
                answer = token_required("the session has ended: its token is unknown, expired or revoked")
                drop_cookie(answer, scope)
                return answer
            if scope["method"] not in _SAFE and headers.get("x-detent") != "1":
                return refuse(403, "a change with a session cookie needs the header `X-Detent: 1`")
            return caller
        if self._callers.open_caller is None:
            return token_required("the request has no token; send `Authorization: Bearer dtn_…`")
        if any(name in headers for name in _FORWARDED):
            return token_required("a request that was forwarded by a proxy needs a token")
        return self._callers.open_caller


def token_required(detail: str) -> Response:
    """Return the answer to a request whose token is missing or not valid."""
    answer = refuse(401, f"{detail}. Create a token with `detent tokens create`")
    answer.headers["WWW-Authenticate"] = 'Bearer realm="detent"'
    return answer
