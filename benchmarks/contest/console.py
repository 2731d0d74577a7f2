"""The HTTP API behind the console: how long its requests take, how many it answers, and what an open console costs a
worker."""

from __future__ import annotations

import http.client
import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from benchmarks.contest.arena import Arena, Failed
from benchmarks.contest.works import Size, Values, drained
from benchmarks.measure import median_milliseconds, say, stopwatch
from detent.lifecycle.library import JOB

__all__ = ["open_console", "request_times"]

API = "/api/v1"
TURNS = 3
TIMES = 5
CLIENTS = 4
REQUESTS = 4_000
POLL_SECONDS = 2.0
POLLED = ("workers",)
"""What the overview reads whenever jobs have been counted."""
POLLED_SLOWLY = ("rates?step=minute", "rates?step=hour", "queues", "alerts?state=firing")
"""What it reads every 15 seconds."""
SLOW_TURNS = 7


def request_times(arena: Arena) -> Values:
    """Milliseconds of the slowest request that reads something, and requests for one job that are answered in a second.

    Requests that need the id of something else than a job are left out."""
    with _serving(arena) as address:
        client = _Client(address)
        job_id = client.get(f"{API}/jobs?limit=1")["items"][0]["id"]
        paths = [*_reading_paths(client, job_id), *(f"{API}/jobs?state={state}" for state in JOB.states)]
        times = {path: median_milliseconds(partial(client.get, path), TIMES) for path in paths}
        slowest = sorted(times, key=lambda path: times[path], reverse=True)
        say(
            f"  {len(times)} requests; the slowest: "
            + ", ".join(f"{path} {times[path]:.0f} ms" for path in slowest[:5])
        )
        return {"slowest_ms": times[slowest[0]], "requests": _requests_a_second(address, f"{API}/jobs/{job_id}")}


def open_console(arena: Arena, size: Size) -> list[Values]:
    """Drains while a console is open, against drains in the same database while none is."""
    jobs = 4 * size.drained
    turns: list[Values] = []
    for turn in range(TURNS):
        rates: Values = {}
        for is_open in [True, False] if turn % 2 else [False, True]:
            arena.run("bulk", jobs)
            with _serving(arena) as address, _looking_at(address, is_open):
                rates["open" if is_open else "closed"] = drained(arena, jobs)["per_second"]
        turns.append({"kept": rates["open"] / rates["closed"], **rates})
    return turns


@contextmanager
def _serving(arena: Arena) -> Iterator[str]:
    """A `detent server` of one process, for as long as the block lasts: its host and port."""
    words = [sys.executable, "-m", "detent.cli", "--json", "server", "benchmarks.contenders.detent:app", "--port", "0"]
    with arena.process(words) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        if not line:
            raise Failed("the server did not start")
        yield urlsplit(json.loads(line)["url"]).netloc


@contextmanager
def _looking_at(address: str, is_open: bool) -> Iterator[None]:
    """A console as a browser has it open: a stream, and the overview read again and again."""
    stop, stream = threading.Event(), http.client.HTTPConnection(address)

    def poll() -> None:
        client, turns = _Client(address), count()
        while not stop.wait(POLL_SECONDS):
            for path in (*POLLED, *(POLLED_SLOWLY if next(turns) % SLOW_TURNS == 0 else ())):
                client.get(f"{API}/{path}")

    def follow() -> None:
        stream.request("GET", f"{API}/stream")
        answer = stream.getresponse()
        if answer.status != 200:
            raise Failed(f"the stream answered {answer.status}")
        with suppress(http.client.IncompleteRead):
            while answer.read1(65536):
                pass

    threads = [threading.Thread(target=each) for each in (poll, follow)] if is_open else []
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if stream.sock is not None:
            stream.sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


class _Client:
    """One connection that is kept open."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=60)

    def get(self, path: str) -> Any:
        """Return the answer. Raises `Failed` unless it is 200."""
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise Failed(f"GET {path} answered {answer.status}: {body[:500]!r}")
        return json.loads(body) if body else None


def _reading_paths(client: _Client, job_id: str) -> Iterator[str]:
    """Yield every path that reads and needs no id but that of a plain job, and no argument. A stream does not end, and
    `verify` reads the whole record: no page calls it by itself."""
    for path, verbs in client.get(f"{API}/openapi.json")["paths"].items():
        reading = verbs.get("get")
        if reading is None:
            continue
        needed = {one["name"] for one in reading.get("parameters", ()) if one.get("required")}
        is_left_out = path.endswith(("/stream", "/record/verify")) or "/workflows/{job_id}" in path
        if needed <= {"job_id"} and not is_left_out:
            yield path.replace("{job_id}", job_id)


def _requests_a_second(address: str, path: str) -> float:
    def ask() -> None:
        client = _Client(address)
        for _ in range(REQUESTS // CLIENTS):
            client.get(path)

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    with stopwatch() as watch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return REQUESTS / watch.seconds
