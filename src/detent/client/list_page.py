"""Lists: their pages, the filters of jobs, and the cursors that `after` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from detent.client.job_verbs import check_id
from detent.declare.settings import Settings
from detent.errors import InvalidInput
from detent.lifecycle.library import JOB
from detent.model import json_codec
from detent.model.clock import from_micros, to_micros
from detent.model.records import JobPlace
from detent.store.jobs.filters import JobSearch

if TYPE_CHECKING:
    from detent.client.engine import Engine

__all__ = ["LIST_MAX", "ListPage", "check_limit", "checked_search", "page_by_name", "place_of", "text_of"]

T = TypeVar("T")
U = TypeVar("U")

LIST_MAX = 10_000

_NAMES = ("task", "queue", "tenant", "key", "correlation_id", "worker", "error")


class ListPage(list[T]):
    """One page of a list: a plain list whose `next` is the `after` of the next page, or None at the end."""

    def __init__(self, found: Iterable[T], next: str | None = None) -> None:
        super().__init__(found)
        self.next = next

    def _repr_html_(self) -> str:
        from detent.client.notebook_html import table

        return table(self, more=self.next is not None)

    def each(self, change: Callable[[T], U]) -> ListPage[U]:
        """Return the same page with every item changed."""
        return ListPage(map(change, self), self.next)


def check_limit(limit: int) -> int:
    """Return how many items to list. `InvalidInput`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIST_MAX:
        raise InvalidInput("limit", repr(limit)[:80], f"a whole number from 1 to {LIST_MAX}")
    return limit


def page_by_name(found: Iterable[T], name: Callable[[T], str], after: str | None, limit: int) -> ListPage[T]:
    """Return one page of items that are sorted by name: those after the name `after`."""
    most = check_limit(limit)
    left = [one for one in found if after is None or name(one) > after]
    return ListPage(left[:most], name(left[most - 1]) if len(left) > most else None)


def checked_search(chosen: Mapping[str, Any], engine: Engine) -> JobSearch:
    """Return the filters of `app.jobs.list` and `app.jobs.where`, checked. `InvalidInput`."""
    settings = engine.settings
    state = chosen["state"]
    if state is not None and state not in JOB.states:
        raise InvalidInput("state", repr(state)[:80], ", ".join(JOB.states))
    for field in _NAMES:
        if chosen[field] is not None:
            most = settings.reason_max if field == "error" else settings.name_max
            json_codec.text(chosen[field], field=field, bytes_max=most, allow_empty=field == "tenant")
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
    """Return each name with a JSON array of the values that match: the given one, or any of a tuple."""
    found = []
    for name, value in metadata.items():
        json_codec.text(name, field="metadata", bytes_max=settings.name_max)
        allowed = list(value) if isinstance(value, tuple) else [value]
        if not all(one is None or isinstance(one, str | int | float) for one in allowed):
            raise InvalidInput(f"metadata.{name}", repr(value)[:80], "a text, a number, true, false or null")
        found.append((name, json_codec.encode(allowed, field="metadata", size_max=settings.metadata_max)))
    return tuple(found)


def text_of(place: JobPlace | None) -> str | None:
    """Return a place in a list as the text that `after` accepts."""
    return None if place is None else f"{to_micros(place.created_at, field='after')}-{place.id}"


def place_of(text: str | None) -> JobPlace | None:
    """Return the place in a list that `after` names. `InvalidInput`."""
    if text is None:
        return None
    micros, dash, number = text.partition("-") if isinstance(text, str) else ("", "", "")
    if not (dash and all(part.isascii() and part.isdecimal() and len(part) < 20 for part in (micros, number))):
        raise InvalidInput("after", repr(text)[:80], "the `next` of the page before, such as 1767225600000000-17")
    return JobPlace(from_micros(int(micros)), int(number))
