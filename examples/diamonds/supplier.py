"""A supplier of diamonds with a paged API, served here: `python examples/diamonds/supplier.py --stones 500000`.

GET  /count?low=0&high=500&since=2026-01-01T00:00:00+00:00     how many stones have a list price in that range
GET  /stones?low=0&high=500&since=…&offset=0&limit=200         up to `limit` of them, and where the next page begins
POST /update {"count": 50}      changes the cost of that number of stones, chosen at random
POST /drop   {"count": 20}      sells that number of stones: they are no longer listed
POST /mood   {"errors": 0.05, "delay": 0.01}    how often it answers 503, and how slowly it answers
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from bisect import bisect_left
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["Supplier", "serve"]

SHAPES = ("round", "oval", "pear", "emerald", "cushion")
OLD = "2026-01-01T00:00:00+00:00"


class Supplier:
    """The stones, ordered by list price; most are cheap. What is asked, and what changes, happens one at a time."""

    def __init__(self, stones: int, seed: int = 7) -> None:
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.errors = 0.0
        self.delay = 0.0
        self.asked = 0
        made = [self._stone(n) for n in range(stones)]
        self._stones = sorted(made, key=lambda stone: (stone["list_price"], stone["id"]))
        self._prices = [stone["list_price"] for stone in self._stones]

    def _stone(self, n: int) -> dict[str, Any]:
        price = min(999_999, int(self._chance.paretovariate(1.3) * 400))
        return {
            "id": f"D{n:07}",
            "carat": round(0.3 + self._chance.random() * 3, 2),
            "shape": SHAPES[n % len(SHAPES)],
            "list_price": price,
            "cost": price * 60 // 100,
            "updated_at": OLD,
        }

    def costs(self) -> dict[str, int]:
        """The cost of every stone that is there, by id."""
        with self._lock:
            return {stone["id"]: stone["cost"] for stone in self._stones}

    def find(self, low: int, high: int, since: str | None) -> list[dict[str, Any]]:
        """Stones with a list price in that range, changed since then."""
        with self._lock:
            self.asked += 1
            found = self._stones[bisect_left(self._prices, low) : bisect_left(self._prices, high)]
            if since is None:
                return found
            moment = datetime.fromisoformat(since)
            return [stone for stone in found if datetime.fromisoformat(stone["updated_at"]) >= moment]

    def update(self, count: int) -> list[str]:
        """Change the cost of `count` stones, and return their ids."""
        with self._lock:
            places = self._chance.sample(range(len(self._stones)), count)
            for place in places:
                old = self._stones[place]
                self._stones[place] = old | {"cost": old["cost"] + 7, "updated_at": datetime.now(UTC).isoformat()}
            return [self._stones[place]["id"] for place in places]

    def drop(self, count: int) -> list[str]:
        """Remove `count` stones, and return their ids."""
        with self._lock:
            gone = set(self._chance.sample(range(len(self._stones)), count))
            ids = [self._stones[place]["id"] for place in sorted(gone)]
            self._stones = [stone for place, stone in enumerate(self._stones) if place not in gone]
            self._prices = [stone["list_price"] for stone in self._stones]
            return ids

    def is_moody(self) -> bool:
        """Whether this request gets an error; and it may take its time."""
        time.sleep(self.delay)
        return self._chance.random() < self.errors


class Server(ThreadingHTTPServer):
    """Serves one supplier; many may come at once."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hung up, as a killed worker does, is no error of the server's."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def serve(supplier: Supplier, port: int = 0) -> tuple[Server, str]:
    """Serve it on a thread; the server and its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            words = {name: values[0] for name, values in parse_qs(asked.query).items()}
            if supplier.is_moody():
                self._answer(503, {"error": "come back later"})
                return
            found = supplier.find(int(words["low"]), int(words["high"]), words.get("since"))
            if asked.path == "/count":
                self._answer(200, {"count": len(found)})
                return
            offset, limit = int(words["offset"]), int(words["limit"])
            ahead = offset + limit
            self._answer(200, {"stones": found[offset:ahead], "next": ahead if ahead < len(found) else None})

        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            match self.path:
                case "/update":
                    self._answer(200, {"ids": supplier.update(told["count"])})
                case "/drop":
                    self._answer(200, {"ids": supplier.drop(told["count"])})
                case "/mood":
                    supplier.errors, supplier.delay = told.get("errors", 0.0), told.get("delay", 0.0)
                    self._answer(200, {})
                case _:
                    self._answer(404, {"error": "no such door"})

        def _answer(self, code: int, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    server = Server(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A supplier of diamonds.")
    parser.add_argument("--stones", type=int, default=500_000)
    parser.add_argument("--port", type=int, default=8099)
    options = parser.parse_args()
    _, address = serve(Supplier(options.stones), options.port)
    print(f"{options.stones} stones at {address}; interrupt to end")
    threading.Event().wait()
