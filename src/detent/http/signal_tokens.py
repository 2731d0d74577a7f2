"""`/hooks/signals/{token}`: links and callbacks that send a signal to a workflow.

A GET shows what the token is for and takes nothing, since mail scanners open links. A POST redeems it. The token is the
right: neither needs a login, and the tenant does not matter.
"""

from __future__ import annotations

import logging
from html import escape
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from detent.app.detent import Detent
from detent.client.signal_tokens import TokenFacts, look_at_token
from detent.errors import (
    DatabaseError,
    DetentError,
    InvalidPayload,
    JobEnded,
    NotFound,
    TokenUsed,
    WaitOver,
    WrongToken,
)
from detent.http.bodies import encode, to_body
from detent.http.failed_logins import FailedLogins
from detent.http.problems import PROBLEM, problem, refuse
from detent.model import json_codec
from detent.model.token_records import hash_token
from detent.model.workflow_records import SignalSent

__all__ = ["SIGNALS", "SignalTokens"]

log = logging.getLogger("detent.server")

SIGNALS = "/hooks/signals/{token}"
_ACTOR = "signal token"
_FORM = "application/x-www-form-urlencoded"
_LETTERS_PER_BYTE = 3
"""A form may need as many letters for a byte."""
_EXTRA = 1024
_FIELDS_MAX = 10
_HEADERS = {
    "Cache-Control": "no-store",
    # With `no-referrer`, browsers hide the origin of a form, and it would be refused as one of another site.
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Robots-Tag": "noindex",
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>{title}</title></head>
<body><main><h1>{title}</h1>{content}</main></body></html>
"""


class SignalTokens:
    """The two routes. Tokens that are not valid count as failed logins do, by client address."""

    def __init__(self, app: Detent) -> None:
        self._app = app
        self._failed = FailedLogins()

    async def show(self, request: Request) -> Response:
        """Answer what the token is for: a page with a form for browsers, JSON for programs."""
        token = str(request.path_params["token"])
        try:
            found = await run_in_threadpool(look_at_token, self._app.store, token)
        except DetentError as error:
            return self._refuse(request, token, error)
        if _wants_page(request):
            payload = request.query_params.get("payload")
            try:
                self._checked(payload)
            except InvalidPayload as error:
                return self._refuse(request, token, error)
            return _page(f"Send {found.signal}?", _form(found, payload))
        return Response(encode(to_body(found)), 200, _HEADERS, "application/json")

    async def redeem(self, request: Request) -> Response:
        """Send the signal with the payload of the body."""
        token = str(request.path_params["token"])
        try:
            # Before the body is read: a caller without a token learns nothing and costs nothing.
            await run_in_threadpool(look_at_token, self._app.store, token)
        except WrongToken as error:
            return self._refuse(request, token, error)
        except DetentError:
            pass  # a token that was used before is answered again, also if its workflow has ended since
        try:
            payload = await self._payload(request)
            if isinstance(payload, Response):
                return payload
            sent = await run_in_threadpool(self._send, token, payload.value)
        except DetentError as error:
            return self._refuse(request, token, error)
        except ClientDisconnect:
            return refuse(400, "the body is incomplete")
        if _wants_page(request):
            again = "" if sent.created else " It was sent before; this link counts once."
            return _page("Thank you", f"<p>The answer has arrived.{again}</p>")
        return Response(encode(to_body(sent)), 200, _HEADERS, "application/json")

    def _send(self, token: str, payload: Any) -> SignalSent:
        return self._app.workflows.redeem(token, payload, actor=_ACTOR)

    async def _payload(self, request: Request) -> _Payload | Response:
        """Return the payload: the body as JSON, or the field `payload` of a form. Nothing is null."""
        most = self._app.settings.payload_max
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind not in ("application/json", _FORM):
            return refuse(415, f"the body is {kind[:80]!r}; send application/json")
        size_max = most if kind != _FORM else _LETTERS_PER_BYTE * most + _EXTRA
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > size_max:
                return refuse(413, f"the body has more than {size_max} bytes")
            parts.append(part)
        text = b"".join(parts)
        if kind == _FORM:
            text = _field_of(text.decode(errors="replace")).encode()
        if not text.strip():
            return _Payload(None)
        try:
            decoded = text.decode()
        except UnicodeDecodeError as error:
            raise InvalidPayload("payload", f"bytes that are not UTF-8: {error}"[:200], "JSON as UTF-8") from None
        return _Payload(self._checked(decoded))

    def _checked(self, text: str | None) -> Any:
        """Return a payload from its JSON. `InvalidPayload`."""
        return json_codec.decode(text or "null", field="payload", depth_max=self._app.settings.depth_max)

    def _refuse(self, request: Request, token: str, error: DetentError) -> Response:
        found = problem(error)
        if isinstance(error, WrongToken):
            address = request.client.host if request.client else ""
            self._failed.note(address, hash_token(token))
            if wait := self._failed.seconds_to_wait(address):
                answer = refuse(429, f"too many tokens that are not valid came from {address}; try again in {wait} s")
                answer.headers["Retry-After"] = str(wait)
                return answer
        headers = dict(_HEADERS)
        if isinstance(error, DatabaseError):
            # Not with the path of the request: the token is in it.
            log.error("%s of the token of a signal failed: %s", request.method, error)
            headers["Retry-After"] = "1"
        if _wants_page(request):
            title, text = _for_people(error, found.detail)
            return _page(title, f"<p>{escape(text)}</p>", found.status)
        return Response(msgspec.json.encode(found), found.status, headers, PROBLEM)


class _Payload(msgspec.Struct, frozen=True):
    """A payload, which may be null."""

    value: Any


def _field_of(form: str) -> str:
    """Return the field `payload` of a form. `InvalidPayload`."""
    try:
        fields = parse_qs(form, keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError:
        found = f"a form of more than {_FIELDS_MAX} fields"
        raise InvalidPayload("payload", found, f"at most {_FIELDS_MAX}, one of them named payload") from None
    return fields.get("payload", [""])[-1]


def _wants_page(request: Request) -> bool:
    """Whether a browser asks, rather than a program."""
    return "text/html" in request.headers.get("accept", "")


def _for_people(error: DetentError, detail: str) -> tuple[str, str]:
    """Return title and text of the page that refuses a token. Whoever follows a link does not know what a job is."""
    match error:
        case JobEnded() | NotFound():
            return "This question is closed", "It was answered, or it is not asked any more."
        case WaitOver():
            return "This question is closed", "It was answered in another way, or its time is over."
        case TokenUsed():
            return "This link was used before", "It was sent with another answer. The first answer counts."
        case WrongToken():
            return (
                "This link does not work",
                "It is incomplete, or was not made here. Use the whole link as it was sent.",
            )
        case _:
            return "This link does not work", detail


def _form(found: TokenFacts, payload: str | None) -> str:
    about = f"<p>This sends <strong>{escape(found.signal)}</strong> to {escape(found.task)}, job {found.job_id}.</p>"
    if payload is None:
        field = '<p><label>JSON<br><textarea name="payload" rows="4" cols="60">null</textarea></label></p>'
    else:
        shown = f"<p>Answer: <code>{escape(payload)}</code></p>"
        field = f'{shown}<input type="hidden" name="payload" value="{escape(payload)}">'
    return f'{about}<form method="post">{field}<p><button type="submit">Send</button></p></form>'


def _page(title: str, content: str, status: int = 200) -> Response:
    return Response(_PAGE.format(title=escape(title), content=content), status, _HEADERS, "text/html; charset=utf-8")
