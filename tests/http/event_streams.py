"""A server on a real socket, and clients of its streams."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx2
import uvicorn
from fastapi import FastAPI

from tests.deadlines import scaled, until

__all__ = ["Follower", "Message", "messages_of", "serve"]


class Message(NamedTuple):
    """One message: its name, its id if it has one of its own, and its JSON."""

    event: str
    id: str | None
    data: Any


@contextmanager
def serve(api: FastAPI, port: int = 0) -> Iterator[str]:
    """Serve an API on loopback until the block ends; gives the URL of its stream."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        config = uvicorn.Config(api, log_config=None, access_log=False, timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started, "the start of the server")
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/api/v1/stream"
        finally:
            api.state.streams.stop()
            server.should_exit = True
            thread.join(scaled(20))
            assert not thread.is_alive()


def messages_of(lines: Iterator[str], saw: Callable[[str], None] = lambda _: None) -> Iterator[Message]:
    """Yield messages as a browser would, and tell every id that a reconnect would send."""
    event, place, data = "message", None, list[str]()
    for line in lines:
        if line == "":
            if place is not None:
                saw(place)
            if data:
                yield Message(event, place, json.loads("\n".join(data)))
            event, place, data = "message", None, []
        elif not line.startswith(":"):
            field, _, value = line.partition(": ")
            if field == "data":
                data.append(value)
            elif field == "id":
                place = value
            elif field == "event":
                event = value


class Follower:
    """A client that follows a stream on a thread of its own until it ends."""

    def __init__(self, url: str, last: str | None = None, token: str | None = None, **query: Any) -> None:
        self.messages: list[Message] = []
        self.last = last
        self.status = 0
        self.headers: dict[str, str] = {}
        self.has_ended = False
        self.error: httpx2.HTTPError | None = None
        self._url, self._token, self._query = url, token, query
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        until(lambda: self.status or self.has_ended, "an answer")

    def _follow(self) -> None:
        headers = {} if self.last is None else {"Last-Event-ID": self.last}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            with (
                httpx2.Client(timeout=scaled(30), trust_env=False) as client,
                client.stream("GET", self._url, headers=headers, params=self._query) as answer,
            ):
                self.headers, self.status = dict(answer.headers), answer.status_code
                if self.status != 200:
                    return
                for one in messages_of(answer.iter_lines(), self._saw):
                    self.messages.append(one)
        except httpx2.HTTPError as error:
            self.error = error
        finally:
            self.has_ended = True

    def _saw(self, place: str) -> None:
        self.last = place

    def of(self, *events: str) -> list[Message]:
        """Return the messages with these names."""
        return [one for one in self.messages if one.event in events]

    def ended(self) -> bool:
        """Wait for the end of the stream."""
        self._thread.join(scaled(30))
        return self.has_ended
