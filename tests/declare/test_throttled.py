"""What a response of an HTTP client asks for (B5): seconds, a date, or nothing that can be read."""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import httpx2
import pytest

from detent import Throttled
from detent.model.clock import TurnableClock
from tests.deadlines import scaled

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def response(status: int, **headers: str) -> Any:
    return SimpleNamespace(
        status_code=status, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def test_seconds_count_as_they_are() -> None:
    found = Throttled.from_response(response(429, Retry_After="30"))
    assert found is not None
    assert found.retry_after == 30


def test_a_date_is_measured_by_the_clock_of_the_other_side() -> None:
    """B5: a clock that is wrong here must not make anybody come too early."""
    asked = response(429, Retry_After="Sun, 01 Mar 2026 12:00:40 GMT", Date="Sun, 01 Mar 2026 12:00:10 GMT")
    found = Throttled.from_response(asked, TurnableClock(datetime(2026, 3, 1, 12, 5, tzinfo=UTC)))
    assert found is not None
    assert found.retry_after == 30


def test_a_date_is_measured_by_our_clock_where_theirs_is_not_known() -> None:
    asked = response(429, retry_after="Sun, 01 Mar 2026 12:00:40 GMT")
    found = Throttled.from_response(asked, TurnableClock(NOON))
    assert found is not None
    assert found.retry_after == 40


@pytest.mark.parametrize("header", [{}, {"Retry_After": "soon"}, {"Retry_After": ""}, {"Retry_After": "-3"}])
def test_what_cannot_be_read_leaves_it_to_the_engine(header: dict[str, str]) -> None:
    """B5: then it waits 16 s, 32 s, 64 s."""
    found = Throttled.from_response(response(429, **header))
    assert found is not None
    assert found.retry_after is None


@pytest.mark.parametrize("status", [200, 404, 500, 503])
def test_other_answers_are_none_of_its_business(status: int) -> None:
    assert Throttled.from_response(response(status, Retry_After="30")) is None
    Throttled.check(response(status, Retry_After="30"))


def test_an_error_of_urllib_is_a_response_too() -> None:
    headers = Message()
    headers["retry-after"] = "7"
    with pytest.raises(Throttled) as caught:
        Throttled.check(HTTPError("http://shop", 429, "Too Many Requests", headers, None))
    assert caught.value.retry_after == 7


def test_a_response_of_httpx2_asks_for_what_the_server_said() -> None:
    """B5: from a real server to the exception, with the helper in between."""

    class Shop(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(429)
            self.send_header("Retry-After", "9")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        Thread(target=server.serve_forever).start()
        try:
            answer = httpx2.get(f"http://127.0.0.1:{server.server_port}/price", trust_env=False, timeout=scaled(60))
        finally:
            server.shutdown()
    with pytest.raises(Throttled) as caught:
        Throttled.check(answer)
    assert caught.value.retry_after == 9
