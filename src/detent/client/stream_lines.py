"""Reading the streams of workflows, which are events of their jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from detent.client.polling import event_pages
from detent.declare.settings import Settings
from detent.declare.workflow import check_name
from detent.model import json_codec
from detent.model.records import EventRow
from detent.model.stream_records import STREAM, StreamLine
from detent.store.contract import Verbs

__all__ = ["lines_of", "stream_page", "stream_pages"]

_PAGE = 1000
_PAGES_MAX = 25


def stream_pages(
    verbs: Verbs, job_id: int, settings: Settings, name: str | None, *, follow: bool
) -> Iterator[tuple[list[StreamLine], float]]:
    """Yield the text of a stream, or of all, page by page, as `event_pages` does."""
    if name is not None:
        check_name("stream", name)
    for events, pause in event_pages(verbs, job_id, settings, follow=follow):
        yield lines_of(events, name), pause


def stream_page(
    verbs: Verbs, job_id: int, name: str | None, after: int, limit: int
) -> tuple[list[StreamLine], int | None]:
    """Return up to `limit` lines with numbers after `after`, and the number to continue after; None at the end. It
    reads 25,000 events at most, so a page may be short."""
    if name is not None:
        check_name("stream", name)
    found: list[StreamLine] = []
    for _ in range(_PAGES_MAX):
        events = verbs.job_events(job_id, after, _PAGE)
        for line in lines_of(events, name):
            found.append(line)
            if len(found) == limit:
                return found, line.seq
        if len(events) < _PAGE:
            return found, None
        after = events[-1].seq
    return found, after


def lines_of(events: Iterable[EventRow], name: str | None) -> list[StreamLine]:
    """Return those events that are text of the stream, or of any stream."""
    found = []
    for event in events:
        if event.level != STREAM:
            continue
        about: dict[str, Any] = json_codec.decode(event.payload or "{}", field="stream")
        if name is None or about.get("stream") == name:
            found.append(
                StreamLine(
                    job_id=event.job_id,
                    seq=event.seq,
                    stream=str(about.get("stream", "")),
                    attempt=event.attempt,
                    text=event.message,
                    at=event.at,
                )
            )
    return found
