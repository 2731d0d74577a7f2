"""How long a caller waits for a database that does not answer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

__all__ = ["HasDeadlines"]


class HasDeadlines(Protocol):
    """A store whose calls can be given a deadline."""

    def answering_within(self, seconds: float) -> AbstractContextManager[None]:
        """Limit how long this thread waits for a server inside the block. A connection that stays silent for longer is
        closed, with all others at rest; the call raises `DatabaseUnreachable`, or `OutcomeUnknown` if it may have
        written. Files have no server: no limit there."""
        ...
