"""Requests that must be refused: without a right token, under other names, from other pages, or of other tenants."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from detent import Detent
from detent.http.api import build_api
from detent.http.permissions import role_needed
from detent.http.public_paths import is_public
from detent.model.token_records import ROLES
from detent.testing.harness import Harness
from prove.figure import Budget, Tally
from prove.hostile.requests import Answer, ask
from prove.hostile.world import declare_all
from prove.security.routes import METHODS, OF_A_TENANT, TRICKS, VERBS, arguments_for, path_of, routes_of

__all__ = ["Kind", "attack_server", "lower_roles", "other_places", "other_tenants", "without_token"]

_HOST = b"localhost"
_FOREIGN_HOSTS = (
    *(
        b"evil.example",
        b"localhost.evil.example",
        b"127.0.0.1.evil.example:8321",
        b"",
        b"[::2]",
        b"localhost@x",
        b"0.0.0.0",
    ),
)
_FOREIGN_PAGES = (
    *(
        (b"origin", b"http://evil.example"),
        (b"origin", b"null"),
        (b"origin", b"http://localhost:9"),
        (b"origin", b"http://["),
    ),
    *((b"sec-fetch-site", b"cross-site"), (b"sec-fetch-site", b"same-site")),
)
_NOWHERE = (400, 401, 404, 405)
_XSS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "</script><svg onload=alert(1)>",
)
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
}


@dataclass(frozen=True)
class _Try:
    """A request, and which statuses are right. `without` must not be in the answer."""

    what: str
    method: str
    path: str
    headers: tuple[tuple[bytes, bytes], ...]
    allowed: tuple[int, ...]
    body: bytes = b""
    without: str = ""


Kind: TypeAlias = "Callable[[Any, dict[str, str], dict[str, dict[str, str]]], Iterator[_Try]]"
"""Makes the requests of one kind: of the application, tokens by what they are, and ids by tenant."""


def attack_server(
    url: str, budget: Budget, random: Random, tally: Tally, share: float, kinds: Sequence[Kind] | None = None
) -> None:
    """Send such requests to an application that requires tokens. `share` says how many of all are drawn; `kinds`
    are all, unless given."""
    with ExitStack() as exits:
        harness = exits.enter_context(closing(Harness(url)))
        app = harness.use(declare_all(Detent(url, actor="ana")))
        ids = {tenant: _fill(app, harness, tenant) for tenant in ("acme", "rival")}
        tokens = _tokens(app, harness)
        api = build_api(app)
        loop = asyncio.new_event_loop()
        exits.callback(loop.close)
        before, addresses = _record(app), itertools.count(0x0A000001)

        def sent(one: _Try) -> Answer:
            headers = (
                [(b"host", _HOST), *one.headers]
                if all(name != b"host" for name, _ in one.headers)
                else list(one.headers)
            )
            headers.append((b"content-type", b"application/json"))
            # Too many wrong tokens from one address are refused as such.
            client = str(ipaddress.ip_address(next(addresses)))
            return loop.run_until_complete(ask(api, one.method, one.path, b"", headers, one.body, client))

        tries = [one for kind in kinds or KINDS for one in kind(api, tokens, ids)]
        for one in random.sample(tries, max(1, int(len(tries) * share))):
            if budget.is_spent:
                break
            _check(one, sent(one), tally)
        if (after := _record(app)) != before:
            tally.wrong += 1
            tally.stories.append(f"seed {budget.seed}: requests that were refused have left {after[len(before) :][:5]}")
        _inert(sent, app, tokens, ids, tally)


def _fill(app: Detent, harness: Harness, tenant: str) -> dict[str, str]:
    job = app.enqueue_named("add", '{"a":1,"b":2}', tenant=tenant, key="same")
    run = app.runs.preview_named("reprice", '{"many":2}', tenant=tenant)
    harness.work()
    operation = app.jobs.where(state="quarantined", tenant=tenant, queue="nothing").retry()
    return {"job_id": str(job.id), "run_id": str(run.id), "operation_id": str(operation.id)}


def _tokens(app: Detent, harness: Harness) -> dict[str, str]:
    """Return tokens by what they are: one of each role, one of a tenant, one that has expired, and one revoked."""
    made = {"expired": app.tokens.create("late", role="admin", expires_in=60).token}
    harness.clock.advance(61)
    made["revoked"] = app.tokens.create("left", role="admin").token
    app.tokens.revoke("left")
    made |= {role: app.tokens.create(role, role=role).token for role in ROLES}
    made["tenant"] = app.tokens.create("acme-admin", role="admin", tenant="acme").token
    return made


def _bearer(token: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {token}".encode()


def without_token(api: Any, tokens: dict[str, str], ids: dict[str, dict[str, str]]) -> Iterator[_Try]:
    """Yield every route with every method: with no token, a wrong one, an expired one, or one sent in a wrong way."""
    good = tokens["admin"]
    credentials: dict[str, tuple[tuple[bytes, bytes], ...]] = {
        "no token": (),
        "a wrong token": (_bearer("dtn_wrong"),),
        "an expired token": (_bearer(tokens["expired"]),),
        "a revoked token": (_bearer(tokens["revoked"]),),
        "a token as a password": ((b"authorization", f"Basic {good}".encode()),),
        "half of a token": (_bearer(good[: len(good) // 2]),),
        "a token in capitals": (_bearer(good.upper()),),
        "a token as another cookie": ((b"cookie", f"token={good}".encode()),),
        "another user in a header": ((b"x-forwarded-user", b"admin"), (b"x-detent", b"1")),
    }
    paths = [path_of(template, ids["acme"]) for template, _ in routes_of(api)]
    for what, headers in credentials.items():
        for path in paths:
            yield from (_Try(what, method, path, headers, (401,)) for method in METHODS if not is_public(method, path))
        for path in TRICKS:
            for method in ("GET", "POST", "HEAD"):
                yield _Try(f"{what}, a path that is spelled oddly", method, path, headers, _NOWHERE, without="items")


def lower_roles(_api: Any, tokens: dict[str, str], ids: dict[str, dict[str, str]]) -> Iterator[_Try]:
    for role in ROLES[:-1]:
        for verb, method in VERBS:
            if ROLES.index(role_needed(verb)) > ROLES.index(role):
                path = path_of(f"/api/v1{verb.path}", ids["acme"])
                yield _Try(f"the role {role}", method, path, (_bearer(tokens[role]),), (403,), b"{}")


def other_tenants(_api: Any, tokens: dict[str, str], ids: dict[str, dict[str, str]]) -> Iterator[_Try]:
    for verb, method in VERBS:
        path = path_of(f"/api/v1{verb.path}", ids["rival"])
        body = json.dumps(arguments_for(verb)).encode() if verb.changes else b""
        headers = (_bearer(tokens["tenant"]),)
        if re.search(r"{(job|run|operation)_id}", verb.path):
            yield _Try("another tenant's", method, path, headers, (404, 422), body, "rival")
        elif verb.noun not in OF_A_TENANT:
            yield _Try("what has no tenant", method, path, headers, (403,), body, "rival")


def other_places(api: Any, tokens: dict[str, str], ids: dict[str, dict[str, str]]) -> Iterator[_Try]:
    """Names under which the server is not reached, and changes that come from pages of others."""
    paths = [path_of(template, ids["acme"]) for template, _ in routes_of(api)]
    admin, cookie = _bearer(tokens["admin"]), (b"cookie", f"detent_80={tokens['admin']}".encode())
    for path in ("/", *paths):
        yield from (_Try("a foreign host", "GET", path, ((b"host", host), admin), (421,)) for host in _FOREIGN_HOSTS)
    for verb, _ in VERBS:
        if verb.changes:
            path = path_of(f"/api/v1{verb.path}", ids["acme"])
            for page in _FOREIGN_PAGES:
                yield _Try("a page of another origin", "POST", path, (page, admin), (403,), b"{}")
                yield _Try("a page of another origin", "POST", path, (page, cookie, (b"x-detent", b"1")), (403,), b"{}")
            yield _Try("a form with the cookie", "POST", path, (cookie,), (401, 403), b"{}")


KINDS: tuple[Kind, ...] = (without_token, lower_roles, other_tenants, other_places)


def _check(one: _Try, answer: Answer, tally: Tally) -> None:
    tally.injected[f"request with {one.what}" if "token" in one.what else f"request: {one.what}"] += 1
    found = []
    if answer.status not in one.allowed:
        found.append(f"answered {answer.status} instead of {one.allowed}: {answer.body[:200]!r}")
    if one.without and one.without.encode() in answer.body:
        found.append(f"the answer tells {one.without!r}: {answer.body[:200]!r}")
    found += _bad_headers(answer)
    for text in found[:1]:
        tally.wrong += 1
        tally.stories.append(f"{one.what}: {one.method} {one.path} {one.headers!r:.200}\n{text}")


def _bad_headers(answer: Answer) -> Iterator[str]:
    """Yield what browsers are not told."""
    for name, value in _HEADERS.items():
        if answer.headers.get(name) != value:
            yield f"the header {name.decode()} is {answer.headers.get(name)!r}"
    policy = answer.headers.get(b"content-security-policy", b"")
    if b"default-src 'none'" not in policy or b"frame-ancestors 'none'" not in policy or b"unsafe" in policy:
        yield f"the content security policy is {policy!r}"


def _inert(
    sent: Callable[[_Try], Answer], app: Detent, tokens: dict[str, str], ids: dict[str, dict[str, str]], tally: Tally
) -> None:
    """Put scripts into all names and texts. Whatever shows them must be JSON that no browser takes for a page."""
    admin = _bearer(tokens["admin"])
    for text in _XSS:
        job = app.enqueue_named(
            "say", json.dumps({"text": text}), queue=text, tenant=text, metadata={text: text}, key=text
        )
        app.queues.pause(text, reason=text, actor=text)
        app.tokens.create(text, role="viewer", reason=text)
        shown = {**ids["acme"], "job_id": str(job.id), "name": text, "key": text}
        for verb, method in VERBS:
            if method == "GET":
                path = path_of(f"/api/v1{verb.path}", {**shown, "name:path": text, "key:path": text})
                one = _Try("a script in every text", "GET", path, (admin,), (200, 403, 404, 422))
                answer = sent(one)
                _check(one, answer, tally)
                if b"json" not in answer.headers.get(b"content-type", b""):
                    tally.wrong += 1
                    tally.stories.append(f"{path} answers {text!r} as {answer.headers.get(b'content-type')!r}")
    page = sent(_Try("the console", "GET", "/", ((b"accept", b"text/html"),), (200,)))
    if any(text.encode() in page.body for text in _XSS) or any(_bad_headers(page)):
        tally.wrong += 1
        tally.stories.append(f"the page of the console: {[*_bad_headers(page)]}")


def _record(app: Detent) -> list[Any]:
    return [(one.entity, one.entity_id, one.trigger) for one in app.record.search(limit=10_000)]
