"""The HTTP API as an ASGI application: serve it with `detent server`, or mount it in an application of your own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from detent.app.detent import Detent
from detent.app.redaction import redaction_of
from detent.errors import DetentError, InvalidInput
from detent.http.admission import Admission
from detent.http.arguments import read_body, read_query
from detent.http.authentication import Authentication
from detent.http.bodies import answer_of, encode
from detent.http.callers import Caller, Callers, caller_of
from detent.http.console import console_route
from detent.http.description import describe, may_be_null
from detent.http.metrics import add_metrics_route
from detent.http.permissions import check_call, check_role, keep_tenant
from detent.http.problems import answer_error, answer_http_error, answer_unexpected
from detent.http.request_body import read_json
from detent.http.request_checks import RequestChecks
from detent.http.sessions import add_session_routes
from detent.http.signal_tokens import SIGNALS, SignalTokens
from detent.http.special_verbs import special_verbs
from detent.http.stream import stream_endpoint
from detent.http.stream_hub import StreamHub
from detent.http.verbs import Verb, surface_verbs
from detent.http.webhooks import HOOKS, build_hook_endpoint
from detent.model.database_facts import RELEASE

__all__ = ["build_api", "list_verbs"]

_ROOT = "/api/v1"
_VERSION = ".".join(map(str, RELEASE))
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_BODY_EXTRA = 64 * 1024
"""Bytes that a request may have besides its payload."""


def list_verbs() -> list[Verb]:
    """Return all verbs. Those of a collection come before those of one thing, and paths that may hold slashes last."""
    found = [*special_verbs(), *surface_verbs()]
    return sorted(found, key=lambda verb: ("{" in verb.path, ":path}" in verb.path, verb.path.endswith("}")))


def build_api(app: Detent, *, hosts: Sequence[str] = (), actor: str = "http", tokens_required: bool = True) -> FastAPI:
    """Return the API of an application.

    - `hosts`: names, besides those of this machine, under which it is reached.
    - `tokens_required`: refuse requests without a token. Otherwise they may do everything, under the name `actor`.
    """
    api = FastAPI(title="Detent", version=_VERSION, openapi_url=None, docs_url=None, redoc_url=None)
    api.add_exception_handler(DetentError, answer_error)
    api.add_exception_handler(HTTPException, answer_http_error)
    api.add_exception_handler(Exception, answer_unexpected)
    callers = Callers(app, tokens_required=tokens_required, open_name=actor)
    admission = Admission(callers)
    api.state.callers = callers
    # The last one is the first that a request passes.
    api.add_middleware(Authentication, admission=admission)
    api.add_middleware(RequestChecks, hosts=tuple(hosts))
    verbs = list_verbs()
    description = encode(describe(verbs, version=_VERSION))

    async def openapi() -> Response:
        return Response(description, media_type="application/json")

    async def index() -> Response:
        nouns = sorted({verb.noun.partition(" ")[0] for verb in verbs})
        return _json({"name": "detent", "version": _VERSION, "nouns": nouns, "description": f"{_ROOT}/openapi.json"})

    api.add_api_route(_ROOT, index, include_in_schema=False)
    api.add_api_route(f"{_ROOT}/openapi.json", openapi, include_in_schema=False)
    api.add_api_route("/healthz", _healthy, include_in_schema=False)
    api.add_api_route("/readyz", _readiness(app), include_in_schema=False)
    add_metrics_route(api, app)
    add_session_routes(api, admission)
    signals = SignalTokens(app)
    api.add_api_route(SIGNALS, signals.show, methods=["GET"], include_in_schema=False)
    api.add_api_route(SIGNALS, signals.redeem, methods=["POST"], include_in_schema=False)
    api.add_api_route(HOOKS, build_hook_endpoint(app), methods=["POST"], include_in_schema=False)
    api.state.streams = StreamHub(app)
    api.add_api_route(f"{_ROOT}/stream", stream_endpoint(app, api.state.streams), include_in_schema=False)
    for verb in verbs:
        method, endpoint = "POST" if verb.changes else "GET", _endpoint(app, verb, callers)
        api.add_api_route(f"{_ROOT}{verb.path}", endpoint, methods=[method], include_in_schema=False)
    api.router.routes.append(console_route())
    return api


async def _healthy() -> Response:
    """Answer that the process serves requests."""
    return _json({"status": "ok"})


def _readiness(app: Detent) -> Callable[[], Awaitable[Response]]:
    async def ready() -> Response:
        """Answer that the database answers too, and has the schema that this version needs."""
        await run_in_threadpool(app.store.now)
        return _json({"status": "ok"})

    return ready


def _endpoint(app: Detent, verb: Verb, callers: Callers) -> Callable[[Request], Awaitable[Response]]:
    is_null = may_be_null(verb)

    def act(caller: Caller, ids: dict[str, str], given: dict[str, Any]) -> tuple[bytes, bool]:
        with app.acting_as(caller.name):
            allowed = check_call(app, caller, verb, ids, given)
            found = keep_tenant(caller, verb.call(app, ids, SimpleNamespace(**allowed)))
            found = redaction_of(app).answer(ids, found)
            # Encoded here, on the thread: lists may be long.
            answer = encode(answer_of(verb.name, found, may_be_null=is_null))
            return answer, verb.makes_new and getattr(found, "created", True)

    async def endpoint(request: Request) -> Response:
        check_role(caller_of(request), verb)
        if verb.changes:
            filters = read_query(request.query_params, verb.filters)
            given = read_body(await read_json(request, app.settings.payload_max + _BODY_EXTRA), verb.arguments)
            _take_key(given, request)
            _take_trace(given, request)
            given = filters | given
        else:
            given = read_query(request.query_params, verb.arguments)
        body, is_new = await run_in_threadpool(act, caller_of(request), dict(request.path_params), given)
        if verb.noun == "tokens":
            callers.forget()
        if verb.changes:
            return Response(body, 201 if is_new else 200, media_type="application/json")
        tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(body, headers={"ETag": tag, "Cache-Control": "no-cache"}, media_type="application/json")

    endpoint.__name__ = f"{verb.noun}_{verb.name}".replace(" ", "_")
    return endpoint


def _take_trace(given: dict[str, Any], request: Request) -> None:
    """Take the trace context of the header `traceparent` for an enqueue that names none. Ignore one that is invalid, as
    W3C says."""
    found = request.headers.get("traceparent", "")
    if "traceparent" in given and given["traceparent"] is None and _TRACEPARENT.fullmatch(found):
        given["traceparent"] = found


def _take_key(given: dict[str, Any], request: Request) -> None:
    """Take the key of the header `Idempotency-Key`, if the verb has a key. `InvalidInput`."""
    key = request.headers.get("idempotency-key")
    if key is None or "key" not in given:
        return
    if given["key"] not in (None, key):
        raise InvalidInput("Idempotency-Key", key[:80], f"the key in the body, {given['key']!r:.80}, or none")
    given["key"] = key


def _json(value: Any) -> Response:
    return Response(encode(value), media_type="application/json")
