"""Webhooks in both directions: forged and repeated deliveries, and URLs that lead into this machine or its network."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from random import Random
from typing import Any

from detent import Call, Detent, WebhookDelivery
from detent.errors import InvalidSetting
from detent.http.api import build_api
from detent.model.clock import SystemClock
from detent.testing.harness import Harness
from detent.webhooks.destination import AllowList, BlockedAddress, read_url
from detent.webhooks.pinned_post import NoAnswer, post_pinned
from detent.webhooks.signatures import VERIFIERS
from prove.figure import Budget, Tally
from prove.hostile.requests import ask
from prove.hostile.world import declare_all
from prove.security.canary import canary
from prove.security.destinations import BLOCKED, URLS

__all__ = ["attack_webhooks"]

_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
_OTHER = "whsec_AAAA9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
_BODY = b'{"id": "evt_1", "event_id": "Ev1", "type": "order.paid", "n": 7}'
_REPLAYS = 10
_LOOPBACK = ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0.0.0.0")
_SECONDS = 5.0


def attack_webhooks(url: str, budget: Budget, random: Random, tally: Tally) -> None:
    """Send forged and repeated deliveries, and post to every address that is not allowed."""
    with ExitStack() as exits:
        harness = exits.enter_context(closing(Harness(url)))
        app = harness.use(declare_all(Detent(url, actor="ana")))
        loop = asyncio.new_event_loop()
        exits.callback(loop.close)
        for verify in random.sample(sorted(VERIFIERS), len(VERIFIERS)):
            if not budget.is_spent:
                _deliver(app, verify, loop, random, tally)
    _reach_in(tally)


def _known(addresses: list[str], _host: str, _port: int) -> list[str]:
    return addresses


def _deliver(app: Detent, verify: str, loop: Any, random: Random, tally: Tally) -> None:
    def declare(name: str, secret: str) -> Any:
        @app.webhook(name, secret=secret, verify=verify)
        def take(delivery: WebhookDelivery) -> Call[Any]:
            return app.find_task("add").call(1, 2)

        return take

    hook, other = declare(f"shop-{verify}", _SECRET), declare(f"other-{verify}", _OTHER)
    api = build_api(app)

    def sent(body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        given = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        given.append((b"host", b"localhost"))
        answer = loop.run_until_complete(ask(api, "POST", hook.path, b"", given, body))
        return answer.status, answer.body

    def jobs() -> int:
        return sum(one.jobs for one in app.jobs.counts())

    before = jobs()
    for what, body, headers in _forged(hook, other, random):
        tally.injected["forged delivery"] += 1
        # A token in place of a signature says nothing about the body.
        if verify == "gitlab" and what == "another body":
            continue
        status, _ = sent(body, headers)
        if status != 401 or jobs() != before:
            tally.wrong += 1
            tally.stories.append(f"a delivery of {verify} with {what} was answered {status}: {headers}")
    headers = hook.signed(_BODY, "d-1", "push")
    answers = [sent(_BODY, headers) for _ in range(_REPLAYS)]
    statuses = [status for status, _ in answers]
    tally.injected["repeated delivery"] += _REPLAYS
    if statuses != [202] + [200] * (_REPLAYS - 1) or jobs() != before + 1:
        tally.doubled += 1
        tally.stories.append(
            f"a delivery of {verify} that is sent {_REPLAYS} times made {jobs() - before} jobs: {answers[:2]}"
        )


def _forged(hook: Any, other: Any, random: Random) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    proof = hook.verifier.proof
    right = hook.signed(_BODY, "d-1", "push")
    name = next(one for one in right if one.lower() == proof.lower())
    place = random.randrange(len(right[name]))
    flipped = right[name][:place] + ("0" if right[name][place] != "0" else "1") + right[name][place + 1 :]
    yield "no signature", _BODY, {key: value for key, value in right.items() if key != name}
    for what, value in (("an empty signature", ""), ("a short one", right[name][:-1]), ("zeros", "sha256=" + "0" * 64)):
        yield what, _BODY, right | {name: value}
    yield "a signature with another character", _BODY, right | {name: flipped}
    yield "SHA-1", _BODY, right | {name: "sha1=" + "0" * 40}
    yield "the secret of another webhook", _BODY, other.signed(_BODY, "d-1", "push")
    yield "another body", _BODY.replace(b"7", b"8"), right


def _reach_in(tally: Tally) -> None:
    """No URL, and no address that a name has, leads to a listener on this machine."""
    nothing = AllowList("", "443, 8443")
    for url in URLS:
        tally.injected["URL that is not allowed"] += 1
        try:
            nothing.check_url(read_url(url))
        except InvalidSetting:
            continue
        tally.wrong += 1
        tally.stories.append(f"a webhook may go to {url!r}")
    with canary() as trap:
        ports = AllowList("", f"443, {trap.port}")
        tries = [(f"{scheme}://{host}:{trap.port}/", [host]) for scheme in ("http", "https") for host in _LOOPBACK]
        tries += [(f"https://erp.example:{trap.port}/", [str(ipaddress.ip_address(one))]) for one in sorted(BLOCKED)]
        tries += [(f"https://erp.example:{trap.port}/", ["8.8.8.8", "127.0.0.1"])]
        for url, addresses in tries:
            tally.injected["request into this machine or its network"] += 1
            found = "it was sent"
            try:
                post_pinned(read_url(url), b"{}", {}, allow=ports, seconds=_SECONDS, clock=SystemClock(),
                            resolver=partial(_known, addresses))  # fmt: skip
            except (InvalidSetting, BlockedAddress):
                continue
            except NoAnswer as error:
                found = f"it was tried: {error}"
            tally.wrong += 1
            tally.stories.append(f"POST {url}, which is at {addresses}: {found}")
        if trap.connections:
            tally.wrong += 1
            tally.stories.append(f"the listener on this machine was reached {trap.connections} times")
