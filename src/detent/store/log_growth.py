"""Whether the log of a database grows without bound."""

from __future__ import annotations

from typing import Protocol

from detent.model.facts import LogGrowth

__all__ = ["HasLog"]


class HasLog(Protocol):
    """A store whose database may keep a log beside it."""

    def log_growth(self) -> LogGrowth | None:
        """Return how long the write-ahead log is; None if the database has none that readers can make grow. Reads some
        bytes of files and takes no lock."""
        ...
