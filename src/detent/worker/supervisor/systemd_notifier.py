"""Notifications to systemd (sd_notify), without its library."""

from __future__ import annotations

import contextlib
import socket

__all__ = ["SystemdNotifier"]

_EVERY = 1.0


class SystemdNotifier:
    """Speaks to the socket that systemd names in NOTIFY_SOCKET; to nobody where there is none. Never raises."""

    def __init__(self, address: str | None) -> None:
        # An address that begins with @ is in Linux's abstract namespace.
        self._address = f"\0{address[1:]}" if address is not None and address.startswith("@") else address
        self._alive_at = 0.0

    def ready(self) -> None:
        """The worker takes jobs."""
        self._say("READY=1")

    def stopping(self) -> None:
        """It was told to stop."""
        self._say("STOPPING=1")

    def alive(self, now: float) -> None:
        """Its main loop goes round; said at most once a second."""
        if now - self._alive_at >= _EVERY:
            self._alive_at = now
            self._say("WATCHDOG=1")

    def _say(self, words: str) -> None:
        if self._address is None:
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one,
        ):
            one.setblocking(False)
            one.sendto(words.encode(), self._address)
