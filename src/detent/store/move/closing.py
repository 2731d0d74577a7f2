"""What the guards of a closed database say, as the error that a caller gets."""

from __future__ import annotations

import re

from detent.errors import DatabaseMoved

__all__ = ["CLOSED", "closed_message", "moved_error"]

CLOSED = "DT048"
"""The SQLSTATE of `DatabaseMoved`, and how the message of the guards begins."""

_MESSAGE = re.compile(rf"{CLOSED} database: (?P<state>\w+) (?P<place>.+) since (?P<since>\S+)")
_INSTEAD = {
    "moved": "use that one",
    "moving": "wait until the move has ended, or run `detent move --cancel`",
    "loading": "run `detent move` again",
}


def closed_message(state: str, place: str, since: str) -> str:
    """Return what the guards of a closed database say. `since` is a time in ISO 8601."""
    return f"{CLOSED} database: {state} {place} since {since}"


def moved_error(database: str, message: str) -> DatabaseMoved | None:
    """Return the error that a message of the guards stands for; None if it is another message."""
    match = _MESSAGE.search(message)
    if match is None:
        return None
    return DatabaseMoved(database, _INSTEAD.get(match["state"], ""), match["state"], match["place"], match["since"])
