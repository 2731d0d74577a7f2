"""Sessions of the console, and what a browser or a proxy could be made to do."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from detent.http.api import build_api
from detent.http.callers import Caller, caller_still_valid
from tests.http.conftest import World

CONSOLE = {"X-Detent": "1"}


def secured(world: World, url: str = "http://localhost:8321", **options: Any) -> TestClient:
    """Return a client of an API that requires tokens."""
    return TestClient(build_api(world.app, hosts=["shop.example"], **options), base_url=url)


def test_without_tokens_the_caller_is_the_actor_of_the_application(world: World) -> None:
    assert world.get("session") == {
        "name": "ana", "role": "admin", "tenant": None, "tokens_required": False, "expires_at": None
    }  # fmt: skip


def test_a_token_that_is_sent_counts_where_none_is_required(world: World) -> None:
    bearer = {"Authorization": f"Bearer {world.app.tokens.create('bob').token}"}
    assert world.http.get("/api/v1/session", headers=bearer).json()["name"] == "bob"
    assert world.http.post("/api/v1/queues/mail/pause", headers=bearer).status_code == 403
    assert world.http.get("/api/v1/session", headers={"Authorization": "Bearer dtn_wrong"}).status_code == 401


def test_a_request_that_a_proxy_forwarded_needs_a_token(world: World) -> None:
    """S4: a proxy in front of a server without tokens would let the whole network in."""
    assert world.http.get("/api/v1/jobs", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 401


def test_a_session_from_login_to_logout(world: World) -> None:
    """S4: the token is in a cookie that scripts cannot read and that no other site can make a browser send."""
    made = world.app.tokens.create("ana", role="operator", tenant="acme", expires_in=3600)
    http = secured(world)
    refused = http.post("/api/v1/session", json={"token": "dtn_wrong"}, headers=CONSOLE)
    assert (refused.status_code, "set-cookie" in refused.headers) == (401, False)
    answer = http.post("/api/v1/session", json={"token": f" {made.token}\n"}, headers=CONSOLE)
    assert {name: answer.json()[name] for name in ("name", "role", "tenant", "tokens_required")} == {
        "name": "ana", "role": "operator", "tenant": "acme", "tokens_required": True
    }  # fmt: skip
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"detent_8321={made.token}; HttpOnly; Max-Age=3600; Path=/; SameSite=strict"), cookie
    assert http.get("/api/v1/session").json()["name"] == "ana"
    assert http.post("/api/v1/session/end", headers=CONSOLE).status_code == 200
    assert http.get("/api/v1/session").status_code == 401


def test_over_https_the_cookie_is_sent_over_https_only(world: World) -> None:
    token = world.app.tokens.create("ana").token
    http = secured(world, "https://shop.example")
    cookie = http.post("/api/v1/session", json={"token": token}, headers=CONSOLE).headers["set-cookie"]
    assert cookie.startswith("detent=")
    assert cookie.endswith("Secure")


def test_under_a_prefix_the_cookie_is_of_the_prefix(world: World) -> None:
    token = world.app.tokens.create("ana").token
    outer = Starlette(routes=[Mount("/inside", build_api(world.app))])
    http = TestClient(outer, base_url="http://localhost")
    cookie = http.post("/inside/api/v1/session", json={"token": token}, headers=CONSOLE).headers["set-cookie"]
    assert "; Path=/inside;" in cookie
    assert http.get("/inside/api/v1/session").json()["name"] == "ana"
    assert TestClient(outer, base_url="http://localhost").get("/inside/api/v1/jobs").status_code == 401
    assert TestClient(outer, base_url="http://localhost").get("/inside/healthz").status_code == 200


def test_a_session_ends_with_its_token(world: World) -> None:
    """S4: the browser is told to drop the cookie."""
    token = world.app.tokens.create("ana", expires_in=60).token
    http = secured(world)
    http.post("/api/v1/session", json={"token": token}, headers=CONSOLE)
    world.harness.clock.advance(60)
    ended = http.get("/api/v1/session")
    assert (ended.status_code, 'detent_8321="";' in ended.headers["set-cookie"]) == (401, True)
    assert "Max-Age=0" in ended.headers["set-cookie"]


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"X-Detent": "1"}, True),
        ({"X-Detent": "1", "Origin": "http://localhost:8321", "Sec-Fetch-Site": "same-origin"}, True),
        ({}, False),
        ({"X-Detent": "1", "Origin": "http://evil.example"}, False),
        ({"X-Detent": "1", "Origin": "null"}, False),
        ({"X-Detent": "1", "Origin": "http://localhost:9999"}, False),
        ({"X-Detent": "1", "Sec-Fetch-Site": "cross-site"}, False),
        ({"X-Detent": "1", "Sec-Fetch-Site": "same-site"}, False),
    ],
)
def test_no_other_page_changes_anything_with_the_cookie(world: World, headers: dict[str, str], allowed: bool) -> None:
    """S4: a change with a cookie needs a header that forms cannot send, and the origin of the console."""
    http = secured(world)
    token = world.app.tokens.create("ana", role="operator").token
    assert http.post("/api/v1/session", json={"token": token}, headers=headers).status_code == (200 if allowed else 403)
    http.post("/api/v1/session", json={"token": token}, headers=CONSOLE)
    answer = http.post("/api/v1/queues/mail/pause", json={"reason": "x"}, headers=headers)
    assert answer.status_code == (200 if allowed else 403)
    assert world.get("queues")["items"] == [] or allowed


def test_a_program_needs_no_header_but_its_token(world: World) -> None:
    http = secured(world)
    bearer = {"Authorization": f"Bearer {world.app.tokens.create('ci', role='operator').token}"}
    assert http.post("/api/v1/queues/mail/pause", json={}, headers=bearer).status_code == 200


def test_no_foreign_host_is_answered(world: World) -> None:
    """S4: against DNS rebinding, before anything else, the console and the checks of health included."""
    token = world.app.tokens.create("ana", role="admin").token
    http = secured(world)
    foreign = ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8321", "", "[::2]", "localhost@x")
    for path in ("/", "/healthz", "/api/v1/jobs", "/api/v1/session"):
        for host in foreign:
            answer = http.get(path, headers={"Host": host, "Authorization": f"Bearer {token}"})
            assert answer.status_code == 421, (path, host)


def test_failed_tokens_are_limited_by_address(world: World) -> None:
    """S4: ten wrong ones, then 429 with Retry-After. One who is logged in works on, and other addresses too."""
    token = world.app.tokens.create("ana").token
    http = secured(world)
    http.post("/api/v1/session", json={"token": token}, headers=CONSOLE)
    fresh = TestClient(http.app, base_url="http://localhost:8321")
    answers = [
        fresh.post("/api/v1/session", json={"token": f"dtn_{n}"}, headers=CONSOLE)
        if n % 2
        else fresh.get("/api/v1/jobs", headers={"Authorization": f"Bearer dtn_{n}"})
        for n in range(11)
    ]
    assert [one.status_code for one in answers] == [401] * 10 + [429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 6
    assert http.get("/api/v1/session").status_code == 200
    elsewhere = TestClient(http.app, base_url="http://localhost:8321", client=("192.0.2.7", 5))
    assert elsewhere.get("/api/v1/jobs", headers={"Authorization": "Bearer dtn_x"}).status_code == 401


def test_the_same_expired_session_is_no_guess(world: World) -> None:
    """A page with an expired session sends its cookie many times before it shows the login; the login must work."""
    http = secured(world)
    for _ in range(30):
        assert http.get("/api/v1/jobs", headers={"Cookie": "detent_8321=dtn_old"}).status_code == 401
    token = world.app.tokens.create("ana").token
    assert http.post("/api/v1/session", json={"token": token}, headers=CONSOLE).status_code == 200


def test_a_revoked_token_ends_streams(world: World) -> None:
    """S4: `caller_still_valid` of a stream says so within its two seconds of memory; at once if revoked here."""
    made = world.app.tokens.create("ana")
    api = build_api(world.app)
    scope: Any = {"type": "http", "app": api, "state": {}, "headers": []}
    token_hash = hashlib.sha256(made.token.encode()).hexdigest()
    scope["state"]["caller"] = Caller(name="ana", role="viewer", token_id=made.id, token_hash=token_hash)

    async def ask() -> list[bool]:
        first = await caller_still_valid(Request(scope))
        world.app.tokens.revoke("ana")
        api.state.callers.forget()
        return [first, await caller_still_valid(Request(scope))]

    assert asyncio.run(ask()) == [True, False]


def test_revoking_over_http_is_felt_at_once(world: World) -> None:
    http = secured(world)
    admin = {"Authorization": f"Bearer {world.app.tokens.create('root', role='admin').token}"}
    made = http.post("/api/v1/tokens/ci/create", json={"role": "operator"}, headers=admin)
    assert (made.status_code, made.json()["token"][:4]) == (201, "dtn_")
    bearer = {"Authorization": f"Bearer {made.json()['token']}"}
    assert http.get("/api/v1/jobs", headers=bearer).status_code == 200
    assert http.post("/api/v1/tokens/ci/revoke", json={"reason": "leaked"}, headers=admin).status_code == 200
    assert http.get("/api/v1/jobs", headers=bearer).status_code == 401
    listed = http.get("/api/v1/tokens?revoked=true", headers=admin)
    assert {one["name"]: one["revoked_by"] for one in listed.json()["items"]} == {"root": None, "ci": "root"}
    assert "dtn_" not in listed.text


def test_the_use_of_a_token_is_noted(world: World) -> None:
    bearer = {"Authorization": f"Bearer {world.app.tokens.create('ana').token}"}
    assert world.app.tokens.list()[0].last_used_at is None
    secured(world).get("/api/v1/jobs", headers=bearer)
    assert world.app.tokens.list()[0].last_used_at == world.harness.clock.now()


def test_a_dump_of_the_database_holds_no_usable_token(world: World, store_url: str) -> None:
    """S4: neither the text of the token nor something that is accepted in its place."""
    made = world.app.tokens.create("ana", role="admin", reason="for the dump")
    secured(world).get("/api/v1/jobs", headers={"Authorization": f"Bearer {made.token}"})
    if not store_url.startswith("sqlite"):
        return
    with sqlite3.connect(store_url.removeprefix("sqlite:///")) as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert hashlib.sha256(made.token.encode()).hexdigest() in dump
    assert made.token not in dump
    assert made.token[4:] not in dump
    stolen = {"Authorization": f"Bearer {hashlib.sha256(made.token.encode()).hexdigest()}"}
    assert secured(world).get("/api/v1/jobs", headers=stolen).status_code == 401


def test_the_text_of_a_token_is_not_in_its_repr(world: World) -> None:
    """S4: a logged object must not leak it."""
    made = world.app.tokens.create("ana")
    assert made.token not in repr(made)
    assert made.token not in f"{made}"


def test_an_index_helps(world: World) -> None:
    token = world.app.tokens.create("ana").token
    http = secured(world)
    assert http.get("/api/v1").status_code == 401
    found = http.get("/api/v1", headers={"Authorization": f"Bearer {token}"}).json()
    assert (found["description"], "jobs" in found["nouns"]) == ("/api/v1/openapi.json", True)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_wrong_method(world: World, method: str) -> None:
    answer = world.http.request(method, "/api/v1/jobs")
    assert (answer.status_code, answer.headers["content-type"]) == (405, "application/problem+json")
    assert answer.json()["code"] == "HTTP405"


def test_requests_that_are_too_long_or_too_deep(world: World) -> None:
    """L7"""
    assert world.http.get("/api/v1/jobs", params={"task": "x" * 17_000}).status_code == 414
    assert world.http.get("/api/v1/jobs", headers={"X-Long": "x" * 33_000}).status_code == 431
    long = world.http.post("/api/v1/jobs", content=b" " * 20_000_000, headers={"Content-Type": "application/json"})
    assert long.status_code == 422
    assert "body: found more than" in long.text
    deep = "[" * 100_000 + "]" * 100_000
    for path, body in (
        ("jobs", f'{{"task": "add", "payload": {{"a": {deep}}}}}'),
        ("jobs", deep),
        ("jobs", '{"a":' * 9000),
    ):
        answer = world.http.post(f"/api/v1/{path}", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, answer.text
    assert world.http.get("/api/v1/jobs", params={"metadata": "[" * 5000}).status_code == 422


def test_headers_of_every_answer(world: World) -> None:
    """S4: no answer may be framed, guessed at, kept by caches or read by other sites."""
    http = secured(world)
    for path in ("/api/v1/jobs", "/healthz", "/api/v1/nothing", "/"):
        answer = http.get(path, headers={"Accept": "text/html"})
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"X-Long": "x" * 33_000}):
        refused = http.post("/api/v1/jobs", headers=headers)
        assert refused.status_code in (403, 421, 431)
        assert "default-src 'none'" in refused.headers["content-security-policy"], "also if no route is reached"


def test_websockets_are_refused(world: World) -> None:
    with pytest.raises(WebSocketDisconnect), secured(world).websocket_connect("/api/v1/stream"):
        raise AssertionError("the connection was accepted")
