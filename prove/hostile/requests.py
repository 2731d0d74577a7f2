"""Hostile requests to the HTTP API: sent to the ASGI application itself, so that any byte can be sent."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from prove.hostile.calls import VERBS, Call, Verdict, argument, clipped, hostile
from prove.hostile.values import Values
from prove.hostile.world import World

__all__ = ["Answer", "ask", "http_call"]

_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW", "get")
_TYPES = (
    b"application/json",
    b"application/json",
    b"text/plain",
    b"application/json; charset=utf-16",
    b"\xff",
    b"",
    b"a/b;;;",
)
_RANDOM_ANSWERS = {"tokens", "webhooks", "identities", "workers", "ops"}
_SECRETS = ("Traceback", 'File "', "sqlite3.", "psycopg.", "SQLSTATE")
"""What the answer to a request that failed must not tell."""


class Answer:
    """The answer to one request."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""


async def ask(
    api: Any,
    method: str,
    path: str,
    query: bytes,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    client: str = "127.0.0.1",
) -> Answer:
    """Send a request, and return its answer."""
    answer, sent = Answer(), False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status, answer.headers = message["status"], dict(message["headers"])
        else:
            answer.body += message.get("body", b"")

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": headers,
        "client": (client, 1),
        "server": ("localhost", 80),
    }
    await api(scope, receive, send)
    return answer


def http_call(values: Values, ids: dict[str, str]) -> Call:
    """Draw a request."""
    verb = values.one(VERBS)
    path = "/api/v1" + "/".join(
        quote(str(argument(name, ids, values)), safe="", errors="replace")
        if (name := part.strip("{}").partition(":")[0]) != part
        else part
        for part in verb.path.split("/")
    )
    fields = [
        field for field in msgspec.structs.fields(verb.arguments) if field.required or values.random.random() < 0.35
    ]
    method, query, body = "POST" if verb.changes else "GET", b"", b""
    if verb.changes:
        body = _body(values, {field.name: argument(field.name, ids, values) for field in fields})
        query = _query(values, [field.name for field in msgspec.structs.fields(verb.filters)], ids, 0.3)
    else:
        query = _query(values, [field.name for field in fields], ids, 1.0)
    headers = [(b"host", b"localhost")]
    if body:
        headers.append((b"content-type", _TYPES[0] if values.random.random() < 0.9 else values.one(_TYPES)))
    if values.random.random() < 0.1:
        key = values.text().encode("utf-8", "replace").replace(b"\n", b"").replace(b"\r", b"")
        headers.append((values.one((b"idempotency-key", b"traceparent", b"if-none-match", b"accept-language")), key))
    if values.random.random() < 0.03:
        method = values.one(_METHODS)
    if values.random.random() < 0.03:
        path = "/" + quote(values.text(), safe="/%", errors="replace")

    def send(world: World) -> Verdict:
        try:
            answer = world.loop.run_until_complete(ask(world.api, method, path, query, headers, body))
        except Exception as error:
            return Verdict(False, "500", f"answered 500: {type(error).__name__}: {clipped(str(error))}")
        return _verdict(answer, verb.noun not in _RANDOM_ANSWERS)

    shown = f"{method} {path[:300]}?{clipped(query)} {clipped(body)} {clipped(headers[1:])}"
    return Call("HTTP", shown, send)


def _verdict(answer: Answer, is_compared: bool) -> Verdict:
    text = answer.body.decode("utf-8", "replace")
    if answer.status >= 500 or answer.status < 200:
        return Verdict(False, str(answer.status), f"answered {answer.status}: {clipped(text)}")
    accepted = answer.status < 400
    wrong = "" if accepted else next((f"the answer tells {one!r}: {text}" for one in _SECRETS if one in text), "")
    if b"json" in answer.headers.get(b"content-type", b""):
        try:
            json.loads(answer.body)
        except ValueError as error:
            wrong = f"the answer is no JSON: {error}: {clipped(text)}"
    return Verdict(accepted, f"{answer.status} {text if is_compared or not accepted else ''}", wrong)


def _body(values: Values, given: dict[str, Any]) -> bytes:
    if values.random.random() < 0.15:
        return values.octets()
    if values.random.random() < 0.1:
        given[values.text()] = values.nested()
    try:
        return json.dumps(given, default=str).encode()
    except (
        ValueError,
        RecursionError,
        TypeError,
    ):  # an integer with more digits than Python prints, a name of another type
        return values.octets()


def _query(values: Values, names: list[str], ids: dict[str, str], share: float) -> bytes:
    parts = []
    for name in names:
        if values.random.random() < share:
            value = argument(name, ids, values) if values.random.random() < 0.5 else hostile(name, values, as_text=True)
            parts.append(quote(name).encode() + b"=" + _octets(values, value))
    if values.random.random() < 0.05:
        parts.append(_octets(values, values.text()))
    return b"&".join(parts)


def _octets(values: Values, value: Any) -> bytes:
    if isinstance(value, int) and not -(10**300) < value < 10**300:
        value = "9" * 400
    text = str(value)[:20_000]
    if values.random.random() < 0.1:
        return text.encode("utf-8", "replace")
    return quote(text, errors="replace").encode() + (
        values.one((b"", b"%", b"%zz", b"%ff", b"%00")) if values.random.random() < 0.05 else b""
    )
