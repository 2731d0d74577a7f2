"""Pages of a search, the same on every database: where one begins, and where the next one goes on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from detent.model.records import JobPage, JobPlace, JobRow, RecordPage, RecordPlace, TransitionRow
from detent.store.words import JobSearch, RecordSearch

__all__ = ["PORTION", "bounds_of", "page_of", "record_bounds", "record_page"]

PORTION = 1000
"""How many jobs or lines a search looks at before it asks whether its page is full."""

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_END = JobPlace(datetime(9999, 1, 1, tzinfo=UTC), 2**63 - 1)


def bounds_of(chosen: JobSearch, after: JobPlace | None) -> tuple[datetime, JobPlace]:
    """Return the earliest time of creation, and the place that jobs must come after."""
    until = _END if chosen.until is None else JobPlace(chosen.until, 0)
    return chosen.since or _BEGINNING, min(until, after or _END)


def page_of(rows: Sequence[JobRow], limit: int, stopped: JobPlace | None) -> JobPage:
    """Return the page; the next one goes on after its last job if it is full, else where the search stopped."""
    full = JobPlace(rows[-1].created_at, rows[-1].id) if len(rows) == limit else None
    return JobPage(list(rows), full or stopped)


def record_bounds(chosen: RecordSearch, after: RecordPlace | None) -> tuple[datetime, RecordPlace]:
    """Return the earliest time, and the place that lines must come after."""
    end = RecordPlace(_END.created_at, _END.id)
    until = end if chosen.until is None else RecordPlace(chosen.until, 0)
    return chosen.since or _BEGINNING, min(until, after or end)


def record_page(rows: Sequence[TransitionRow], limit: int, stopped: RecordPlace | None) -> RecordPage:
    """Return the page; the next one goes on after its last line if it is full, else where the search stopped."""
    full = RecordPlace(rows[-1].at, rows[-1].n) if len(rows) == limit else None
    return RecordPage(list(rows), full or stopped)
