"""Messages between two processes of a worker: JSON lines over a socket pair. The end of the stream means that the other
process is gone."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["Channel"]

_UNSENT_MAX = 1 << 20
"""Bytes that `post` keeps if the other side does not read. Above that, it refuses messages."""


class Channel:
    """One end of the connection. Sending is safe from any thread, and does not raise if the other side is gone. No
    thread waits for the other side while it holds the lock."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lock = threading.Lock()
        self._unsent = bytearray()

    @classmethod
    def pair(cls) -> tuple[Channel, socket.socket]:
        """Return the channel for this side, and the socket for the other."""
        here, there = socket.socketpair()
        return cls(here), there

    def send(self, kind: str, **fields: Any) -> bool:
        """Send a message and wait until it is sent; return False if the other side is gone."""
        if not self._add(kind, fields, room=False):
            return False
        try:
            while not self.flush():
                poll = select.poll()
                poll.register(self._end, select.POLLOUT)
                poll.poll()
        except (OSError, ValueError):
            return False
        return True

    def post(self, kind: str, **fields: Any) -> bool:
        """Send a message without waiting. If the other side has no room, it is kept until the next `post` or `flush`.
        Return False, and do not keep it, if too much is kept already or the other side is gone."""
        if not self._add(kind, fields, room=True):
            return False
        try:
            self.flush()
        except OSError:
            return False
        return True

    def flush(self) -> bool:
        """Send as much of what is kept as the other side has room for; return whether all of it was sent. Raises
        `OSError` if the other side is gone."""
        with self._lock:
            while self._unsent:
                try:
                    sent = self._end.send(self._unsent, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return False
                except OSError:
                    self._unsent.clear()
                    raise
                del self._unsent[:sent]
        return True

    @property
    def is_flushed(self) -> bool:
        """Whether every message was sent."""
        return not self._unsent

    def _add(self, kind: str, fields: dict[str, Any], *, room: bool) -> bool:
        data = msgspec.json.encode({"kind": kind, **fields}) + b"\n"
        with self._lock:
            if room and len(self._unsent) > _UNSENT_MAX:
                return False
            self._unsent += data
        return True

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield each message as it arrives, until the other side is gone."""
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
        """Close this end."""
        self._end.close()
