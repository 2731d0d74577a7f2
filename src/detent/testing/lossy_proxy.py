"""A proxy to a PostgreSQL server that loses requests and answers, as a test chooses.

    with Proxy(url, lambda request: "answer" if request.verb == "COMMIT" else None) as proxy:
        store = open_store(proxy.url)

It listens on loopback and forwards bytes. For every piece that a client sends, the test decides what is lost: the
`request`, which the server never sees; the `answer`, which the server has sent in full, so that the work is durable; or
nothing. A loss also closes the connection. With `silence` the connection stays open, but nothing is forwarded in either
direction for `silent_seconds`. With `late` the connection is half-open: the client's side is closed at once, and the
server gets the request when `deliver` is called, at the latest `silent_seconds` later.
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

Loss = Literal["request", "answer", "silence", "late"]

_PIECE = 65536
_LOOK_EVERY = 0.05
_READY = re.compile(rb"Z\x00\x00\x00\x05([ITE])\Z")
"""The end of an answer of PostgreSQL: ready for the next request. The letter is I outside a transaction."""

_VERB = re.compile(rb"\bdetent\.(\w+)_v\d+\(|\A(?:[PQ]....\x00?)(COMMIT)\b", re.DOTALL)
_ENDS = re.compile(rb";\s*COMMIT\s*\x00\Z|P....\x00COMMIT\x00", re.DOTALL)


class Request(NamedTuple):
    """A piece that a client sent. `verb` is COMMIT if it ends a transaction, or the verb that it calls, else empty;
    `after` is the verb before that, in the same piece or on the same connection. `in_transaction`: a transaction is
    open on the connection."""

    data: bytes
    verb: str
    after: str
    in_transaction: bool = False


class Proxy:
    """Use it in a `with` block, which closes every connection at its end. `lost` lists the lost verbs, oldest first.
    `on_lost` is called when the server has sent an answer that is lost, before the client notices."""

    def __init__(
        self,
        url: str,
        loses: Callable[[Request], Loss | None],
        port: int = 0,
        *,
        silent_seconds: float = 20.0,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._server = urlsplit(url)
        self._silent_seconds = silent_seconds
        self._loses = loses
        self._on_lost = on_lost
        self._late: list[_LateRequest] = []
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

    def deliver(self) -> None:
        """Send all late requests to the server. Return when it has answered them."""
        for one in self._late:
            one.due.set()
        for one in self._late:
            one.answered.wait()
        self._late.clear()

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
            in_transaction = False
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
                            self._on_lost()
                            return
                        continue
                    if source is server and (ready := _READY.search(data)):
                        in_transaction = ready[1] != b"I"
                    if source is client and swallowed is None:
                        request = _request(data, after, in_transaction)
                        after = request.verb or after
                        if (loss := self._loses(request)) is not None:
                            self.lost.append(request.verb)
                            if loss == "request":
                                return
                            if loss == "late":
                                self._send_late(data, client, server)
                                return
                            if loss == "answer":
                                swallowed = b""
                            elif self._ended.wait(self._silent_seconds):
                                return
                    target.sendall(data)

    def _send_late(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        """Close the client's connection, and send its request to the server later. Return when that has answered."""
        late = _LateRequest()
        self._late.append(late)
        try:
            client.close()
            late.due.wait(self._silent_seconds)
            server.sendall(data)
            server.settimeout(self._silent_seconds)
            answer = b""
            while not _READY.search(answer) and (piece := server.recv(_PIECE)):
                answer = (answer + piece)[-_PIECE:]
        finally:
            late.answered.set()


class _LateRequest:
    """A request that the server gets when it is `due`."""

    def __init__(self) -> None:
        self.due = threading.Event()
        self.answered = threading.Event()


def _request(data: bytes, after: str, in_transaction: bool) -> Request:
    found = _VERB.search(data)
    verb = (found[1] or found[2]).decode() if found else ""
    if verb and _ENDS.search(data):
        return Request(data, "COMMIT", verb, in_transaction)
    return Request(data, verb, after, in_transaction)
