"""Messages of Server-Sent Events as bytes."""

from __future__ import annotations

import re

from detent.http.bodies import encode

__all__ = ["HEARTBEAT", "control", "message", "place_only", "reconnect_after"]

HEARTBEAT = b": the stream is open\n\n"
_LINE_END = re.compile(rb"\r\n|\r|\n")


def message(event: str, data: bytes, place: str | None = None) -> bytes:
    """Return a message with JSON in it. Only lines on record have an id; everything else leaves the client's as it is.
    Stored JSON may have line ends between its parts: each begins a new line of the message."""
    lines = b"\ndata: ".join(_LINE_END.split(data))
    head = f"event: {event}\n" if place is None else f"event: {event}\nid: {place}\n"
    return head.encode() + b"data: " + lines + b"\n\n"


def control(event: str, **fields: str) -> bytes:
    """Return a message about the stream itself. It has no id."""
    return message(event, encode(fields))


def place_only(place: str) -> bytes:
    """Return an id without a message: the client continues after it if it reconnects. Browsers
    raise no event for it."""
    return f"id: {place}\n\n".encode()


def reconnect_after(milliseconds: int) -> bytes:
    """Return how long a client waits before it reconnects."""
    return f"retry: {milliseconds}\n\n".encode()
