"""Outgoing requests reach the checked address, and nothing else."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from itertools import cycle

import pytest

from detent.errors import InvalidSetting
from detent.model.clock import SystemClock
from detent.webhooks.destination import AllowList, BlockedAddress, Destination, read_url
from detent.webhooks.pinned_post import Answer, NoAnswer, Resolver, post_pinned, resolve
from prove.security.canary import Canary, canary

CLOCK = SystemClock()


def post(url: str, allow: str = "", resolver: Resolver = resolve, seconds: float = 20.0, ports: str = "443") -> Answer:
    return post_to(read_url(url), allow, resolver, seconds, ports)


def post_to(to: Destination, allow: str, resolver: Resolver, seconds: float, ports: str) -> Answer:
    return post_pinned(
        to, b"{}", {"X-Test": "1"}, allow=AllowList(allow, ports), seconds=seconds, clock=CLOCK, resolver=resolver
    )


@pytest.fixture
def trap() -> Iterator[Canary]:
    with canary() as found:
        yield found


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0.0.0.0"]
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_spelling_of_loopback_reaches_the_canary(trap: Canary, scheme: str, host: str) -> None:
    """S-07, TW4: also if the port is allowed."""
    with pytest.raises((InvalidSetting, BlockedAddress)):
        post(f"{scheme}://{host}:{trap.port}/", ports=f"443,{trap.port}")
    assert trap.connections == 0


@pytest.mark.parametrize("answers", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::1", "8.8.8.8"], ["127.0.0.1%lo"], []])
def test_a_host_with_one_private_address_is_not_contacted(trap: Canary, answers: list[str]) -> None:
    """S-07: every address is checked, not only the one that would be used."""
    with pytest.raises(BlockedAddress):
        post(f"https://evil.example:{trap.port}/", resolver=lambda host, port: answers, ports=str(trap.port))
    assert trap.connections == 0


def test_a_host_is_resolved_once_and_the_checked_address_is_used(trap: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-07: a resolver that flips its answer after the check changes nothing, and no other resolution happens."""
    answers = cycle([["198.41.0.4"], ["127.0.0.1"]])
    asked: list[str] = []
    connected: list[object] = []

    def flipping(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return next(answers)

    def connect(self: socket.socket, address: object) -> None:
        connected.append(address)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("resolved a second time"))
    with pytest.raises(NoAnswer):
        post(f"https://evil.example:{trap.port}/", resolver=flipping, ports=str(trap.port))
    assert (asked, connected) == (["evil.example"], [("198.41.0.4", trap.port)])
    with pytest.raises(BlockedAddress):
        post(f"https://evil.example:{trap.port}/", resolver=flipping, ports=str(trap.port))
    assert trap.connections == 0


def test_a_redirect_is_not_followed(trap: Canary) -> None:
    """S-07"""

    def redirect(connection: socket.socket, request: bytes) -> None:
        connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{trap.port}/\r\n\r\n".encode())

    with canary(redirect) as first:
        answer = post(f"http://hook.example:{first.port}/", f"hook.example:{first.port}", lambda *_: ["127.0.0.1"])
        assert (answer.status, first.connections, trap.connections) == (302, 1, 0)


def test_proxies_of_the_environment_are_not_used(trap: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    """TW4"""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{trap.port}")
    with canary() as hook:
        assert post(f"http://127.0.0.1:{hook.port}/", f"127.0.0.1:{hook.port}").status == 200
    assert trap.connections == 0


def test_what_the_allow_list_names_is_reached_with_its_own_host(trap: Canary) -> None:
    """TW4: exactly what is allowed, with the name of the URL as host."""
    allow = f"erp.internal:{trap.port}"
    answer = post(f"http://erp.internal:{trap.port}/hook?x=1", allow, lambda *_: ["127.0.0.1"])
    assert (answer.status, answer.excerpt) == (200, "hello")
    (request,) = trap.requests
    assert request.startswith(b"POST /hook?x=1 HTTP/1.1\r\n")
    assert f"\r\nHost: erp.internal:{trap.port}\r\n".encode() in request
    assert request.endswith(b"\r\n\r\n{}")
    with pytest.raises(BlockedAddress):
        post(f"http://erp.internal:{trap.port}/", allow, lambda *_: ["169.254.169.254"])
    assert trap.connections == 1


def test_of_a_huge_answer_one_kilobyte_is_read() -> None:
    """TW5"""

    def flood(connection: socket.socket, request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    with canary(flood) as hook:
        answer = post(f"http://127.0.0.1:{hook.port}/", f"127.0.0.1:{hook.port}")
    assert answer == Answer(200, "x" * 1024)


def test_an_answer_that_comes_byte_by_byte_ends_with_the_time_limit() -> None:
    """TW5: the limit is for the whole delivery, not for each read."""

    def drip(connection: socket.socket, request: bytes) -> None:
        for one in b"HTTP/1.1 200 OK\r\n" + b"X-Slow: 1\r\n" * 10_000:
            connection.sendall(bytes([one]))
            CLOCK.sleep(0.05)

    with canary(drip) as hook, pytest.raises(NoAnswer, match="time"):
        post(f"http://127.0.0.1:{hook.port}/", f"127.0.0.1:{hook.port}", seconds=0.5)


@pytest.mark.parametrize(
    "said",
    [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 9999 x\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"\r\n"],
)
def test_what_is_no_answer_is_said_in_one_sentence(said: bytes) -> None:
    with canary(lambda connection, request: connection.sendall(said)) as hook, pytest.raises(NoAnswer) as refusal:
        post(f"http://127.0.0.1:{hook.port}/secret-path", f"127.0.0.1:{hook.port}")
    assert "secret-path" not in str(refusal.value)


def test_the_excerpt_has_no_control_characters() -> None:
    """TW5: the answer may be shown in a terminal or on a page."""
    said = "\x1b[31mred\x00\u202e <script>\r\n\tok".encode() + b"\xff"
    reply = b"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(said), said)
    with canary(lambda connection, request: connection.sendall(reply)) as hook:
        answer = post(f"http://127.0.0.1:{hook.port}/", f"127.0.0.1:{hook.port}")
    assert answer.status == 500
    assert answer.excerpt.isprintable()
    assert "<script> ok" in answer.excerpt
