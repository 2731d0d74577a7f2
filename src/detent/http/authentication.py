"""Finds the caller of every request before it reaches a route, and refuses requests without a valid token."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from detent.http.admission import Admission, token_required
from detent.http.callers import Caller
from detent.http.permissions import check_path
from detent.http.problems import refuse
from detent.http.public_paths import is_public, path_below_mount
from detent.http.session_cookie import drop_cookie, read_cookie

__all__ = ["Authentication"]

_SAFE = ("GET", "HEAD", "OPTIONS")
_FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip")


class Authentication:
    """ASGI middleware: `request.state.caller` is the caller. Only public paths are reached without one."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller, or refuse it."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        method, path = scope["method"], path_below_mount(scope)
        if is_public(method, path):
            return await self._app(scope, receive, send)
        found = await self._find(scope)
        if isinstance(found, Caller) and (refused := check_path(found, method, path)) is not None:
            found = refuse(403, f"{method} {path[:200]}: {refused}")
        if isinstance(found, Response):
            return await found(scope, receive, send)
        scope.setdefault("state", {})["caller"] = found
        return await self._app(scope, receive, send)

    async def _find(self, scope: Scope) -> Caller | Response:
        headers, callers = Headers(scope=scope), self._admission.callers
        if (credentials := headers.get("authorization")) is not None:
            kind, _, token = credentials.partition(" ")
            if kind.lower() != "bearer":
                return token_required("the header `Authorization` has no bearer token")
            return await self._admission.admit(scope, token.strip())
        if (token := read_cookie(headers) or "") != "":
            found = await self._admission.admit(scope, token)
            if isinstance(found, Response):
                if found.status_code == 401:
                    drop_cookie(found, scope)
            elif scope["method"] not in _SAFE and headers.get("x-detent") != "1":
                return refuse(403, "a change with a session cookie needs the header `X-Detent: 1`")
            return found
        if callers.open_caller is None:
            return token_required("the request has no token; send `Authorization: Bearer dtn_…`")
        if any(name in headers for name in _FORWARDED):
            return token_required("a request that was forwarded by a proxy needs a token")
        return callers.open_caller
