"""Pages of the record in the order of commit, for readers that continue where they stopped.

What both databases share. A database gives the lines of some ranges of numbers in order, and two numbers: `top`, the
highest number that was given out before the lines were read, and `decided`, up to which every number has its line or
never gets one.
"""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import InvalidInput
from detent.model.record_cursor import RANGES_MAX, RecordCursor
from detent.model.records import RecordFeedLine, RecordFeedPage, TransitionRow

__all__ = ["FEED_LIMIT_MAX", "START_LINES_MAX", "check_feed_limit", "check_known", "feed_page"]

FEED_LIMIT_MAX = 1000
START_LINES_MAX = 1000
"""Numbers below the newest one among which a reader that starts now looks for open transactions."""


def check_feed_limit(limit: int) -> int:
    """Return the number of lines of a page. `InvalidInput`."""
    if not 1 <= limit <= FEED_LIMIT_MAX:
        raise InvalidInput("limit", str(limit), f"1 to {FEED_LIMIT_MAX}")
    return limit


def check_known(cursor: RecordCursor, top: int) -> None:
    """Refuse a place beyond the record with `InvalidInput`: it is of another database, or later than a backup that was
    restored."""
    if cursor.last_seen > top:
        found = f"line {cursor.last_seen}; the newest line is {top}"
        raise InvalidInput("after", found, "a cursor of this database, or none to start now")


def feed_page(
    cursor: RecordCursor,
    lines: Sequence[tuple[str, TransitionRow]],
    *,
    limit: int,
    top: int,
    decided: int,
    pruned: bool = False,
) -> RecordFeedPage:
    """Return the page of these lines, each with its tenant, and the place after each of them."""
    found: list[RecordFeedLine] = []
    is_full = len(lines) >= limit
    for tenant, row in lines:
        place = cursor.past(row.n, decided)
        if len(place.ranges) > RANGES_MAX:
            # Too many numbers are open. The rest is read once a transaction has ended.
            return RecordFeedPage(found, cursor.text, False, pruned, found[-1].row.n if found else 0, decided)
        cursor = place
        found.append(RecordFeedLine(cursor.text, tenant, row))
    if is_full:
        return RecordFeedPage(found, cursor.text, True, pruned, found[-1].row.n, decided)
    return RecordFeedPage(found, cursor.through(top, decided).text, False, pruned, top, decided)
