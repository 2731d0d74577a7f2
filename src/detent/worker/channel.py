"""Messages between a supervisor and its child: JSON lines over a socket pair. The end of the file is a message too:
the other side is gone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["Channel"]


class Channel:
    """One end. Sending is safe from any thread and never raises when the other side is gone."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lock = threading.Lock()

    @classmethod
    def pair(cls) -> tuple[Channel, socket.socket]:
        """This side's channel, and the socket for the other."""
        here, there = socket.socketpair()
        return cls(here), there

    def send(self, kind: str, **fields: Any) -> bool:
        """Whether the message went out."""
        data = msgspec.json.encode({"kind": kind, **fields}) + b"\n"
        try:
            with self._lock:
                self._end.sendall(data)
        except OSError:
            return False
        return True

    def messages(self) -> Iterator[dict[str, Any]]:
        """Each message as it comes, until the other side is gone."""
        buffer = b""
        while True:
            try:
                data = self._end.recv(65_536)
            except OSError:
                return
            if not data:
                return
            *whole, buffer = (buffer + data).split(b"\n")
            for line in whole:
                yield msgspec.json.decode(line)

    def close(self) -> None:
        """End the conversation."""
        self._end.close()
