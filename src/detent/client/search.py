"""Checking the filters of a list of jobs, and the text that names a place in the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from detent.client.engine import Engine
from detent.client.moves import check_id
from detent.declare.settings import Settings
from detent.errors import InvalidInput
from detent.lifecycle.library import JOB
from detent.model import jsondoor
from detent.model.clock import from_micros, to_micros
from detent.model.records import JobPlace
from detent.store.jobs.filters import JobSearch

__all__ = ["checked_search", "place_of", "text_of"]

_NAMES = ("task", "queue", "tenant", "key", "correlation_id", "worker", "error")


def checked_search(chosen: Mapping[str, Any], engine: Engine) -> JobSearch:
    """Return the filters of `app.jobs.list` and `app.jobs.where`, checked. `InvalidInput`."""
    settings = engine.settings
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
        run_id=None if chosen["run"] is None else check_id(chosen["run"], "run id"),
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
