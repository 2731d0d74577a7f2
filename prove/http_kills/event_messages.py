"""Messages of a stream of events, as a browser reads them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

__all__ = ["Message", "MessageReader"]


class Message(NamedTuple):
    """One message: its name, its id if it has one of its own, and its JSON."""

    event: str
    id: str | None
    data: Any


class MessageReader:
    """Makes messages of lines as a browser does. `last` is the id that a reconnect would send."""

    def __init__(self, last: str | None = None) -> None:
        self.last = last
        self._event = "message"
        self._place: str | None = None
        self._data: list[str] = []

    def read(self, line: str) -> Message | None:
        """Take a line, and return the message that it ends."""
        if line == "":
            return self._end()
        if not line.startswith(":"):
            field, _, value = line.partition(": ")
            if field == "data":
                self._data.append(value)
            elif field == "id":
                self._place = value
            elif field == "event":
                self._event = value
        return None

    def forget_part(self) -> None:
        """Forget what was read of a message: its connection is gone."""
        self._event, self._place, self._data = "message", None, []

    def _end(self) -> Message | None:
        found = Message(self._event, self._place, json.loads("\n".join(self._data))) if self._data else None
        self.last = self._place or self.last
        self.forget_part()
        return found
