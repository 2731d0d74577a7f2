"""A proxy to a PostgreSQL server that loses requests and answers, as a test chooses.

    with Proxy(url, lambda request: "answer" if request.verb == "COMMIT" else None) as proxy:
        store = open_store(proxy.url)

It listens on loopback and forwards bytes. For every piece that a client sends, the test decides what is lost: the
`request`, which the server never sees; the `answer`, which the server has sent in full, so that the work is durable; or
nothing. A loss also closes the connection. With `silence` the connection stays open, but nothing is forwarded in either
direction for `silent_seconds`.
"""

from __future__ import annotations

import re
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple, Self
from urllib.parse import urlsplit

__all__ = ["Loss", "Proxy", "Request"]

Loss = Literal["request", "answer", "silence"]

_PIECE = 65536
_LOOK_EVERY = 0.05
_READY = re.compile(rb"Z\x00\x00\x00\x05[ITE]\Z")
"""The end of an answer of PostgreSQL: ready for the next request."""

_VERB = re.compile(rb"\bdetent\.(\w+)_v\d+\(|\A(?:[PQ]....\x00?)(COMMIT)\b", re.DOTALL)
_ENDS = re.compile(rb";\s*COMMIT\s*\x00\Z|P....\x00COMMIT\x00", re.DOTALL)


class Request(NamedTuple):
    """A piece that a client sent. `verb` is COMMIT if it ends a transaction, or the verb that it calls, else empty;
    `after` is the verb before that, in the same piece or on the same connection."""

    data: bytes
    verb: str
    after: str


class Proxy:
    """Use it in a `with` block, which closes every connection at its end. `lost` lists the lost verbs, oldest first."""

    def __init__(
        self, url: str, loses: Callable[[Request], Loss | None], port: int = 0, *, silent_seconds: float = 20.0
    ) -> None:
        self._server = urlsplit(url)
        self._silent_seconds = silent_seconds
        self._loses = loses
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", port))
        self._listener.settimeout(_LOOK_EVERY)
        self._threads: list[threading.Thread] = []
        self.lost: list[str] = []
        who = f"{self._server.username}@" if self._server.username else ""
        self.url = f"{self._server.scheme}://{who}127.0.0.1:{self._listener.getsockname()[1]}{self._server.path}"

    def __enter__(self) -> Self:
        self._start(self._serve)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="detent-proxy", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while not self._ended.is_set():
            with suppress(TimeoutError):
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection((str(self._server.hostname), self._server.port or 5432))
                except OSError:
                    client.close()
                    continue
                self._start(lambda client=client, server=server: self._carry(client, server))  # type: ignore[misc]

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, selectors.DefaultSelector() as selector, suppress(OSError):
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            swallowed: bytes | None = None
            after = ""
            while not self._ended.is_set():
                for key, _ in selector.select(_LOOK_EVERY):
                    source, target = key.fileobj, key.data
                    assert isinstance(source, socket.socket)
                    data = source.recv(_PIECE)
                    if not data:
                        return
                    if source is server and swallowed is not None:
                        swallowed = (swallowed + data)[-_PIECE:]
                        if _READY.search(swallowed):
                            return
                        continue
                    if source is client and swallowed is None:
                        request = _request(data, after)
                        after = request.verb or after
                        if (loss := self._loses(request)) is not None:
                            self.lost.append(request.verb)
                            if loss == "request":
                                return
                            if loss == "answer":
                                swallowed = b""
                            elif self._ended.wait(self._silent_seconds):
                                return
                    target.sendall(data)


def _request(data: bytes, after: str) -> Request:
    found = _VERB.search(data)
    verb = (found[1] or found[2]).decode() if found else ""
    return Request(data, "COMMIT", verb) if verb and _ENDS.search(data) else Request(data, verb, after)
