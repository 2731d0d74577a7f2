"""The cookie that holds the token of a console's session."""

from __future__ import annotations

from datetime import datetime

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import Scope

__all__ = ["drop_cookie", "put_cookie", "read_cookie"]

_SECONDS_MAX = 30 * 24 * 3600


def read_cookie(headers: Headers) -> str | None:
    """Return the token in the cookie of a request; None if there is none."""
    return cookie_parser(headers.get("cookie", "")).get(_name(headers)) or None


def put_cookie(answer: Response, scope: Scope, token: str, expires_at: datetime | None, now: datetime) -> None:
    """Let the browser keep the token until it expires, at most for 30 days."""
    left = _SECONDS_MAX if expires_at is None else min(_SECONDS_MAX, int((expires_at - now).total_seconds()))
    _put(answer, scope, token, max(left, 0))


def drop_cookie(answer: Response, scope: Scope) -> None:
    """Let the browser forget the token."""
    _put(answer, scope, "", 0)


def _put(answer: Response, scope: Scope, token: str, seconds: int) -> None:
    answer.set_cookie(
        _name(Headers(scope=scope)),
        token,
        max_age=seconds,
        path=scope.get("root_path", "") or "/",
        secure=scope.get("scheme") == "https",
        httponly=True,  # out of reach of scripts
        samesite="strict",  # sent by pages of this origin only
    )


def _name(headers: Headers) -> str:
    """Return the name of the cookie. It has the port in it: cookies of one host are shared by all its ports."""
    port = headers.get("host", "").rpartition("]")[2].partition(":")[2]
    return f"detent_{port}" if port.isascii() and port.isdigit() else "detent"
