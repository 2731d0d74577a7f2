"""Notifications to systemd (sd_notify), without its library."""

from __future__ import annotations

import contextlib
import socket

__all__ = ["SystemdNotifier"]

_ALIVE_EVERY = 1.0


class SystemdNotifier:
    """Sends to the socket that systemd names in NOTIFY_SOCKET; does nothing if there is none. Never raises."""

    def __init__(self, address: str | None) -> None:
        # An address that begins with @ is in Linux's abstract namespace.
        self._address = f"\0{address[1:]}" if address is not None and address.startswith("@") else address
        self._alive_at = 0.0

    def ready(self) -> None:
        """Report that the worker takes jobs."""
        self._send("READY=1")

    def stopping(self) -> None:
        """Report that the worker was told to stop."""
        self._send("STOPPING=1")

    def alive(self, now: float) -> None:
        """Report, at most once a second, that the supervisor's main loop is running."""
        if now - self._alive_at >= _ALIVE_EVERY:
            self._alive_at = now
            self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one,
        ):
            one.setblocking(False)
            one.sendto(message.encode(), self._address)
