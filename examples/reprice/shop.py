"""The shop: prices behind an HTTP API that really limits, and that fails and lies as real ones do.

    GET  /products                every price, in one answer
    GET  /products/SKU            one price; this is not limited
    PUT  /products/SKU            {"price": 100}, with an Idempotency-Key: the same key is done once
    POST /tweak                   {"sku": …, "price": …}: somebody changes a price by hand
    POST /mend                    what is broken for good is mended
    GET  /books                   what the shop has seen: answers by status, keys by product, changes by product

Two buckets leak: requests (2 a second, 40 at once) and cost (400 points, 20 come back a second). A change is reckoned
at 12 points and costs 10 in the end, a look costs 1: `X-Cost` in the answer says so, and what was reckoned too much
goes back. Whoever comes too fast gets 429 and is told when to come again.

What is wrong with it is decided by the number of the product, so that a story can be told: the API fails once for
those that end in 3, times out after having acted for one, is broken for two until somebody mends them, and for one says
yes and does nothing.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BROKEN = ("ring-011", "ring-022")
"""Refused with 500 until somebody mends them."""
SILENT = "ring-005"
"""Changed, and the line goes dead before the answer, once."""
LYING = "ring-017"
"""Answered with 200, and not changed, once."""
LOOK, RECKONED, CHANGE = 1, 12, 10
"""Points that a look costs, that a change is reckoned at, and that it costs in the end."""


class Bucket:
    """A token bucket: it holds `size` tokens, and `a_second` tokens come back each second."""

    def __init__(self, size: float, a_second: float) -> None:
        self._size, self._a_second = size, a_second
        self._left, self._at = size, time.monotonic()

    def take(self, much: float) -> float:
        """Take tokens and return 0. If there are too few, take none, and return the seconds until there are enough."""
        now = time.monotonic()
        self._left = min(self._size, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left >= much:
            self._left -= much
            return 0.0
        return (much - self._left) / self._a_second

    def give_back(self, much: float) -> None:
        """Return tokens that were not needed."""
        self._left = min(self._size, self._left + much)


class Shop:
    """Prices, and everything that was ever asked."""

    def __init__(self, products: int, *, limited: bool = True, troubled: bool = True) -> None:
        self.prices = {f"ring-{number:03}": 1000 + 10 * number for number in range(1, products + 1)}
        self.answers: Counter[int] = Counter()
        self.keys: dict[str, set[str]] = defaultdict(set)
        self.changes: dict[str, list[int]] = defaultdict(list)
        self._done: dict[str, int] = {}
        self._troubles: Counter[str] = Counter()
        self._broken = set(BROKEN) if troubled else set()
        self._troubled = troubled
        self._requests = Bucket(40, 2.0) if limited else None
        self._cost = Bucket(400, 20.0) if limited else None
        self._lock = threading.Lock()

    def wait_for(self, cost: float) -> float:
        """How long the caller has to wait for a place in both buckets; zero where it has one now."""
        with self._lock:
            if self._requests is None or self._cost is None:
                return 0.0
            return self._requests.take(1) or self._cost.take(cost)

    def give_back(self, cost: float) -> None:
        """A call has cost less than it was reckoned at."""
        with self._lock:
            if self._cost is not None:
                self._cost.give_back(cost)

    def change(self, sku: str, price: int, key: str) -> int | None:
        """Change a price; the status to answer with, or None for no answer at all."""
        with self._lock:
            if sku not in self.prices:
                return 404
            self.keys[sku].add(key)
            if key in self._done:
                return 200
            if sku in self._broken or (sku.endswith("3") and self._first_time("fails", sku)):
                return 500
            if sku == LYING and self._first_time("lies", sku):
                self._done[key] = price
                return 200
            self.prices[sku] = price
            self.changes[sku].append(price)
            self._done[key] = price
            return None if sku == SILENT and self._first_time("is silent", sku) else 200

    def mend(self) -> None:
        """From now on nothing is broken."""
        with self._lock:
            self._broken.clear()

    def _first_time(self, trouble: str, sku: str) -> bool:
        self._troubles[f"{trouble} {sku}"] += 1
        return self._troubled and self._troubles[f"{trouble} {sku}"] == 1

    def books(self) -> dict[str, Any]:
        """What it has seen."""
        with self._lock:
            return {
                "answers": {str(status): count for status, count in self.answers.items()},
                "keys": {sku: sorted(keys) for sku, keys in self.keys.items()},
                "changes": dict(self.changes),
            }


class Clerk(BaseHTTPRequestHandler):
    """One request at the counter of the shop."""

    protocol_version = "HTTP/1.1"
    shop: Shop

    def do_GET(self) -> None:
        """Prices, and the books."""
        shop, sku = self.shop, self.path.rpartition("/")[2]
        if self.path == "/books":
            self._say(200, shop.books(), count=False)
        elif sku in shop.prices:
            self._say(200, {"price": shop.prices[sku]})
        elif self._is_too_fast(LOOK):
            return
        elif self.path == "/products":
            self._say(200, shop.prices)
        else:
            self._say(404, {"error": "no such product"})

    def do_PUT(self) -> None:
        """Change a price."""
        asked = self._body()
        if self._is_too_fast(RECKONED):
            return
        self.shop.give_back(RECKONED - CHANGE)
        sku = self.path.rpartition("/")[2]
        status = self.shop.change(sku, asked["price"], self.headers.get("Idempotency-Key", ""))
        if status is None:
            self.close_connection = True
            return
        body = {"price": asked["price"]} if status == 200 else {"error": "it is broken"}
        self._say(status, body, {"X-Cost": str(CHANGE)})

    def do_POST(self) -> None:
        """What people do behind the API's back."""
        asked = self._body()
        if self.path == "/mend":
            self.shop.mend()
        else:
            self.shop.prices[asked["sku"]] = asked["price"]
        self._say(200, {}, count=False)

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")

    def _is_too_fast(self, cost: float) -> bool:
        wait = self.shop.wait_for(cost)
        if wait:
            self._say(429, {"error": "THROTTLED"}, {"Retry-After": f"{wait:.1f}"})
        return wait > 0

    def _say(self, status: int, what: Any, headers: dict[str, str] | None = None, *, count: bool = True) -> None:
        if count:
            self.shop.answers[status] += 1
        body = json.dumps(what).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


class Server(ThreadingHTTPServer):
    """Serves one shop; many may come at once."""

    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hung up, as a killed worker does, is no error of the server's."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def serve(shop: Shop, port: int = 0) -> tuple[Server, str]:
    """Open the shop on this machine alone; the server, to be shut down by whoever opened it, and its address."""
    server = Server(("127.0.0.1", port), type("Handler", (Clerk,), {"shop": shop}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"
