"""The words that all parts of the contract use: which jobs, and what a line of the catalogue says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from detent.errors import DetentError

__all__ = ["JobFilter", "Verb"]


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; None means any."""

    state: str | None = None
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class Verb:
    """A line of the catalogue."""

    name: str
    role: Literal["client", "worker", "viewer", "admin"]
    refuses: tuple[type[DetentError], ...] = ()
