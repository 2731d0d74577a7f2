"""Listeners on loopback that count connections: what an outgoing request must never reach."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Canary", "canary"]

Talk = Callable[[socket.socket, bytes], None]


def _answer_ok(connection: socket.socket, request: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


class Canary:
    """A server that counts its connections and keeps the requests."""

    def __init__(self, listener: socket.socket, talk: Talk) -> None:
        self.port: int = listener.getsockname()[1]
        self.requests: list[bytes] = []
        self.connections = 0
        self._listener, self._talk = listener, talk
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = b""
                while b"\r\n\r\n" not in request and (part := connection.recv(65536)):
                    request += part
                head, _, body = request.partition(b"\r\n\r\n")
                length = next(
                    (
                        int(one.partition(b":")[2])
                        for one in head.split(b"\r\n")
                        if one.lower().startswith(b"content-l")
                    ),
                    0,
                )
                while len(body) < length and (part := connection.recv(65536)):
                    body += part
                self.requests.append(head + b"\r\n\r\n" + body)
                self._talk(connection, request)
            except OSError:
                pass


@contextmanager
def canary(talk: Talk = _answer_ok) -> Iterator[Canary]:
    """Listen on a free port of 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Canary(listener, talk)
        listener.shutdown(socket.SHUT_RDWR)
