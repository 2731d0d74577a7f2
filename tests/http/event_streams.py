"""A server on a real socket, and clients of its streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from fastapi import FastAPI

from prove.http_kills.event_messages import Message, MessageReader
from tests.deadlines import scaled, until
from tests.served_application import serve_application

__all__ = ["Follower", "serve"]


@contextmanager
def serve(api: FastAPI, port: int = 0) -> Iterator[str]:
    """Serve an API on loopback until the block ends; gives the URL of its stream."""
    with serve_application(api, stop=api.state.streams.stop, port=port) as url:
        yield f"{url}/api/v1/stream"


class Follower:
    """A client that follows a stream on a thread of its own until it ends."""

    def __init__(self, url: str, last: str | None = None, token: str | None = None, **query: Any) -> None:
        self.messages: list[Message] = []
        self._reader = MessageReader(last)
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
                for line in answer.iter_lines():
                    if (found := self._reader.read(line)) is not None:
                        self.messages.append(found)
        except httpx2.HTTPError as error:
            self.error = error
        finally:
            self.has_ended = True

    @property
    def last(self) -> str | None:
        """The id that a reconnect would send."""
        return self._reader.last

    def of(self, *events: str) -> list[Message]:
        """Return the messages with these names."""
        return [one for one in self.messages if one.event in events]

    def ended(self) -> bool:
        """Wait for the end of the stream."""
        self._thread.join(scaled(30))
        return self.has_ended
