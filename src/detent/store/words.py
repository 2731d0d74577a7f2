"""The words that all parts of the contract use: which jobs, what a line of the catalogue says, how to wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from detent.errors import DetentError

__all__ = ["LOOKS_MAX", "JobFilter", "JobSearch", "RecordSearch", "Verb", "Wake"]

LOOKS_MAX = 100_000
"""How many jobs, or lines of the record, one page of a search looks at."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; None means any."""

    state: str | None = None
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class JobSearch(JobFilter):
    """Which jobs, by all that is known of them; None means any.

    `key` is that of the tenant, or of none. `worker` holds the job or has made an attempt at it. `error` is a part of
    the job's error or of that of an attempt. `metadata` are members at the top: a name, and a JSON array of the values
    that fit. `since` and `until` are about the time of creation; `until` itself is not included.
    """

    key: str | None = None
    correlation_id: str | None = None
    run_id: int | None = None
    worker: str | None = None
    error: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RecordSearch:
    """Which lines of the record; None means any. An `entity_id` goes with its `entity`; `until` is not included."""

    actor: str | None = None
    entity: str | None = None
    entity_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Verb:
    """A line of the catalogue."""

    name: str
    role: Literal["client", "worker", "viewer", "admin"]
    refuses: tuple[type[DetentError], ...] = ()


class Wake(Protocol):
    """Waiting for work without asking for it all the time. A wake-up may come for nothing, and may be lost: whoever
    waits looks again when its time is over."""

    @property
    def is_sure(self) -> bool:
        """Whether wake-ups were seen to come; where not, whoever waits looks often."""
        ...

    def version(self, timeout: float = 2.0) -> int:
        """Where the waiter stands, who is about to wait for so long; taken before it looks for work, so that what comes
        later is not missed. What is being committed at this moment may be."""
        ...

    def wait(self, version: int, timeout: float) -> bool:
        """Return when something may have become ready since `version`, or after `timeout` seconds (False)."""
        ...

    def interrupt(self) -> None:
        """Let everybody in this process who waits return now."""
        ...
