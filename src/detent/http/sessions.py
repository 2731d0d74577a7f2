"""Sessions of the console: who is logged in, logging in with a token, and logging out.

A session is the token in a cookie that scripts cannot read. It ends when the token expires or is revoked.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from detent.http.admission import Admission
from detent.http.arguments import read_body
from detent.http.callers import Caller, Callers, caller_of
from detent.http.problems import refuse
from detent.http.request_body import read_json
from detent.http.session_cookie import drop_cookie, put_cookie
from detent.model.token_records import Role

__all__ = ["LoginArguments", "Session", "add_session_routes"]

_PATH = "/api/v1/session"
_BODY_MAX = 4096


class LoginArguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The token to log in with."""

    token: str


class Session(msgspec.Struct, kw_only=True):
    """Who is logged in, and what they may do."""

    name: str
    role: Role
    tenant: str | None
    tokens_required: bool
    """Whether requests without a token are refused."""
    expires_at: datetime | None


def add_session_routes(api: FastAPI, admission: Admission) -> None:
    """Add the routes of sessions."""
    callers = admission.callers

    async def show(request: Request) -> Response:
        return _answer(caller_of(request), callers)

    async def log_in(request: Request) -> Response:
        if (refused := _refuse_forged(request)) is not None:
            return refused
        token = read_body(await read_json(request, _BODY_MAX), LoginArguments)["token"].strip()
        caller = await admission.admit(request.scope, token)
        if isinstance(caller, Response):
            return caller
        answer = _answer(caller, callers)
        put_cookie(answer, request.scope, token, caller.expires_at, callers.now())
        return answer

    async def log_out(request: Request) -> Response:
        if (refused := _refuse_forged(request)) is not None:
            return refused
        answer = Response(b"{}", media_type="application/json", headers={"Cache-Control": "no-store"})
        drop_cookie(answer, request.scope)
        return answer

    api.add_api_route(_PATH, show, methods=["GET"], include_in_schema=False)
    api.add_api_route(_PATH, log_in, methods=["POST"], include_in_schema=False)
    api.add_api_route(f"{_PATH}/end", log_out, methods=["POST"], include_in_schema=False)


def _refuse_forged(request: Request) -> Response | None:
    """Return the refusal of a login or logout that a form of another page may have sent; None if it is in order."""
    if request.headers.get("x-detent") == "1":
        return None
    return refuse(403, "logging in or out needs the header `X-Detent: 1`")


def _answer(caller: Caller, callers: Callers) -> Response:
    found = Session(
        name=caller.name,
        role=caller.role,
        tenant=caller.tenant,
        tokens_required=callers.tokens_required,
        expires_at=caller.expires_at,
    )
    return Response(msgspec.json.encode(found), media_type="application/json", headers={"Cache-Control": "no-store"})
