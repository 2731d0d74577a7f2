"""Errors as `application/problem+json` (RFC 9457), with the codes of `errors.TABLE`."""

from __future__ import annotations

import logging
from dataclasses import fields, is_dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from detent.errors import TABLE, DatabaseBusy, DatabaseUnreachable, DetentError
from detent.http.bodies import IDS

__all__ = ["PROBLEM", "Problem", "answer_error", "answer_http_error", "answer_unexpected", "problem", "refuse"]

log = logging.getLogger("detent.server")

PROBLEM = "application/problem+json"
_RETRY_AFTER = "1"


class Problem(msgspec.Struct, kw_only=True):
    """Why a request was refused. `code` is stable; `errors.md` explains each. `fields` has the parts of the message."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    fields: dict[str, Any] = {}


def problem(error: DetentError) -> Problem:
    """Return what to answer for an error of the engine."""
    codes = next(TABLE[kind] for kind in type(error).__mro__ if kind in TABLE)
    parts: dict[str, Any] = {one.name: getattr(error, one.name) for one in fields(error)} if is_dataclass(error) else {}
    return Problem(
        type=f"urn:detent:error:{codes.sqlstate}",
        title=type(error).__name__,
        status=codes.http,
        detail=str(error),
        code=codes.sqlstate,
        fields={name: _part(name, value) for name, value in parts.items()},
    )


def _part(name: str, value: Any) -> Any:
    """Return a part of a message as JSON: ids are strings, as everywhere in the API."""
    if isinstance(value, list | tuple):
        return [_part(name, one) for one in value]
    if value is None or (isinstance(value, int | float) and name not in IDS):
        return value
    return str(value)


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer a request that the engine refused."""
    assert isinstance(error, DetentError)
    found = problem(error)
    if found.status >= 500:
        log.error("%s %s failed: %s", request.method, request.url.path, error)
    retry = {"Retry-After": _RETRY_AFTER} if isinstance(error, DatabaseBusy | DatabaseUnreachable) else {}
    return _answer(found, retry)


async def answer_http_error(request: Request, error: Exception) -> Response:
    """Answer a request that no route takes."""
    assert isinstance(error, HTTPException)
    title = HTTPStatus(error.status_code).phrase
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return _answer(
        Problem(title=title, status=error.status_code, detail=detail, code=f"HTTP{error.status_code}"), error.headers
    )


async def answer_unexpected(request: Request, error: Exception) -> Response:
    """Answer a request that failed by an error in Detent itself. The log has the error; the answer tells nothing."""
    detail = (
        f"{request.method} {request.url.path}: an unexpected {type(error).__name__}; the server's log has the cause"
    )
    return refuse(500, detail)


def refuse(status: int, detail: str) -> Response:
    """Return the answer to a request that is refused before it reaches a route."""
    return _answer(Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, code=f"HTTP{status}"), None)


def _answer(found: Problem, headers: Any) -> Response:
    return Response(msgspec.json.encode(found), found.status, headers and dict(headers), media_type=PROBLEM)
