"""What a caller may ask of a list of jobs, checked; and the text that names a place in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

from detent.client.client import check_id
from detent.declare.settings import Settings
from detent.errors import InvalidInput
from detent.lifecycle.library import JOB
from detent.model import jsondoor
from detent.model.clock import from_micros, to_micros
from detent.model.records import JobPlace, RecordPlace, TransitionRow
from detent.store.words import JobSearch

__all__ = ["JobsFilter", "RecordLines", "check_limit", "checked_search", "place_of", "text_of"]

_LIST_MAX = 10_000
_NAMES = ("task", "queue", "tenant", "key", "correlation_id", "worker", "error")


class JobsFilter(TypedDict, total=False):
    """What `Detent.jobs` takes."""

    state: str | None
    task: str | None
    queue: str | None
    tenant: str | None
    key: str | None
    correlation_id: str | None
    run: int | str | None
    worker: str | None
    error: str | None
    metadata: Mapping[str, Any] | None
    since: datetime | None
    until: datetime | None
    after: str | None
    limit: int | None


def checked_search(chosen: Mapping[str, Any], settings: Settings) -> JobSearch:
    """Return what `Detent.jobs` was asked for. `InvalidInput`."""
    state = chosen["state"]
    if state is not None and state not in JOB.states:
        raise InvalidInput("state", repr(state)[:80], ", ".join(JOB.states))
    for field in _NAMES:
        if chosen[field] is not None:
            most = settings.reason_max if field == "error" else settings.name_max
            jsondoor.text(chosen[field], field=field, bytes_max=most, allow_empty=field == "tenant")
    for field in ("since", "until"):
        if chosen[field] is not None:
            to_micros(chosen[field], field=field)
    return JobSearch(
        state=state,
        task=chosen["task"],
        queue=chosen["queue"],
        tenant=chosen["tenant"],
        key=chosen["key"],
        correlation_id=chosen["correlation_id"],
        run_id=None if chosen["run"] is None else check_id(chosen["run"]),
        worker=chosen["worker"],
        error=chosen["error"],
        metadata=_wanted(chosen["metadata"] or {}, settings),
        since=chosen["since"],
        until=chosen["until"],
    )


def _wanted(metadata: Mapping[str, Any], settings: Settings) -> tuple[tuple[str, str], ...]:
    """Each name with a JSON array of the values that fit: the one that is asked for, or any of a tuple."""
    found = []
    for name, value in metadata.items():
        jsondoor.text(name, field="metadata", bytes_max=settings.name_max)
        allowed = list(value) if isinstance(value, tuple) else [value]
        if not all(one is None or isinstance(one, str | int | float) for one in allowed):
            raise InvalidInput(f"metadata.{name}", repr(value)[:80], "a text, a number, true, false or null")
        found.append((name, jsondoor.encode(allowed, field="metadata", size_max=settings.metadata_max)))
    return tuple(found)


def check_limit(limit: int) -> int:
    """Return how many to list. `InvalidInput`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _LIST_MAX:
        raise InvalidInput("limit", repr(limit), f"a whole number from 1 to {_LIST_MAX}")
    return limit


def text_of(place: JobPlace | None) -> str | None:
    """Return the text that `after` takes."""
    return None if place is None else f"{to_micros(place.created_at, field='after')}-{place.id}"


def place_of(text: str | None) -> JobPlace | None:
    """Return the place that `after` names. `InvalidInput`."""
    if text is None:
        return None
    micros, dash, number = text.partition("-") if isinstance(text, str) else ("", "", "")
    if not (dash and all(part.isascii() and part.isdecimal() and len(part) < 20 for part in (micros, number))):
        raise InvalidInput("after", repr(text)[:80], "the `next` of the page before, such as 1767225600000000-17")
    return JobPlace(from_micros(int(micros)), int(number))


class RecordLines(list[TransitionRow]):
    """Lines of the record; `next` is the `after` of the next page, None at the end."""

    def __init__(self, found: Iterable[TransitionRow], place: RecordPlace | None) -> None:
        super().__init__(found)
        self.next = None if place is None else text_of(JobPlace(place.at, place.n))
