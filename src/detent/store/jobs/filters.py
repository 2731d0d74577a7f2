"""Which jobs, and which lines of the record, a list or a search is about, and the pages of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from detent.model.records import JobPage, JobPlace, JobRow, RecordPage, RecordPlace, TransitionRow

__all__ = [
    "FEW_MAX",
    "LOOKS_MAX",
    "PORTION",
    "JobFilter",
    "JobSearch",
    "RecordSearch",
    "bounds_of",
    "page_of",
    "record_bounds",
    "record_page",
]

FEW_MAX = 20_000
"""Maximum number of jobs of one state that a search sorts at once instead of reading all jobs from the newest on."""
LOOKS_MAX = 25_000
"""Maximum number of jobs, or lines of the record, that one page of a search reads."""
PORTION = 1000
"""Number of jobs or lines that a search reads before it checks whether its page is full."""

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_END = JobPlace(datetime(9999, 1, 1, tzinfo=UTC), 2**63 - 1)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; None means any."""

    state: str | None = None
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class JobSearch(JobFilter):
    """Which jobs, by everything that is known of them; None means any.

    `key` is a key of the tenant, or of no tenant. `worker` holds the job or has made an attempt at it. `error` is a
    part of the job's error or of an attempt's error. `metadata` are members at the top level: a name, and a JSON array
    of the values that fit. `since` and `until` are about the time of creation; `until` itself is not included.
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


def bounds_of(chosen: JobSearch, after: JobPlace | None) -> tuple[datetime, JobPlace]:
    """Return the earliest time of creation, and the place that jobs must come after."""
    until = _END if chosen.until is None else JobPlace(chosen.until, 0)
    return chosen.since or _BEGINNING, min(until, after or _END)


def page_of(rows: Sequence[JobRow], limit: int, stopped: JobPlace | None) -> JobPage:
    """Return the page; the next one continues after its last job if it is full, else where the search stopped."""
    full = JobPlace(rows[-1].created_at, rows[-1].id) if len(rows) == limit else None
    return JobPage(list(rows), full or stopped)


def record_bounds(chosen: RecordSearch, after: RecordPlace | None) -> tuple[datetime, RecordPlace]:
    """Return the earliest time, and the place that lines must come after."""
    end = RecordPlace(_END.created_at, _END.id)
    until = end if chosen.until is None else RecordPlace(chosen.until, 0)
    return chosen.since or _BEGINNING, min(until, after or end)


def record_page(rows: Sequence[TransitionRow], limit: int, stopped: RecordPlace | None) -> RecordPage:
    """Return the page; the next one continues after its last line if it is full, else where the search stopped."""
    full = RecordPlace(rows[-1].at, rows[-1].n) if len(rows) == limit else None
    return RecordPage(list(rows), full or stopped)
