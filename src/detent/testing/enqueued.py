"""The assertions of the fixture `detent` about what was enqueued."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from detent.app.detent import Detent
from detent.client.job import Job
from detent.declare.task import Call, Task
from detent.errors import InvalidInput
from detent.model import json_codec

__all__ = ["Wanted"]

_PAGE = 500
_SHOWN_MAX = 3
_VALUE_MAX = 200


class Wanted:
    """A description of a job: its task, a part of its payload, and columns."""

    def __init__(self, task: str, payload: Any, key: str | None, columns: dict[str, Any]) -> None:
        self.task = task
        self.payload = payload
        self.key = key
        self.columns = columns

    @classmethod
    def of(
        cls,
        what: Task[..., Any, Any] | Call[Any] | str,
        payload: Mapping[str, Any] | None,
        key: str | None,
        **columns: Any,
    ) -> Wanted:
        """Return the description of a task, of its name, or of a call. What is None is left out."""
        given: dict[str, Any] = {}
        if isinstance(what, Call):
            given = json_codec.decode(what.payload)
        if payload is not None:
            given |= json_codec.decode(json_codec.encode(dict(payload), field="payload", size_max=2**31))
        task = what if isinstance(what, str) else (what.task if isinstance(what, Call) else what).name
        return cls(task, given, key, {name: value for name, value in columns.items() if value is not None})

    def __str__(self) -> str:
        parts = [f"payload {_shown(self.payload)}"] if self.payload else []
        parts += [f"key {self.key!r}"] if self.key is not None else []
        parts += [f"{name} {_shown(value)}" for name, value in self.columns.items()]
        return self.task + (f" with {', '.join(parts)}" if parts else "")

    def check(self, app: Detent, count: int | None) -> Job[Any]:
        """Return the newest job that matches. `AssertionError` if none does, or not `count` of them."""
        __tracebackhide__ = True
        if count is not None and count < 1:
            raise InvalidInput("count", str(count), "1 or more; for none, use refute_enqueued")
        nearest: list[tuple[list[str], Job[Any]]] = []
        matches: list[Job[Any]] = []
        keyed = self._keyed(app)
        for job in _jobs(app, self.task):
            if faults := self._faults(job, keyed):
                nearest.append((faults, job))
            else:
                matches.append(job)
        if matches and count in (None, len(matches)):
            return matches[0]
        if matches:
            found = ", ".join(f"job {job.id}" for job in matches[:_SHOWN_MAX])
            raise AssertionError(f"Expected {count} jobs of {self}; found {len(matches)}: {found}.")
        raise AssertionError(f"No job of {self} was enqueued. {self._hint(app, nearest)}")

    def refute(self, app: Detent) -> None:
        """Raise `AssertionError` if a job matches."""
        __tracebackhide__ = True
        keyed = self._keyed(app)
        for job in _jobs(app, self.task):
            if not self._faults(job, keyed):
                payload = _shown(job.payload)
                raise AssertionError(f"Job {job.id} of {self} was enqueued; it is {job.state}, with payload {payload}.")

    def _hint(self, app: Detent, nearest: list[tuple[list[str], Job[Any]]]) -> str:
        if not nearest:
            counted = Counter(job.task for job in _jobs(app, None))
            others = ", ".join(f"{task} ({count})" for task, count in counted.most_common(10))
            return f"There is no job of this task; on record: {others or 'no jobs'}."
        nearest.sort(key=lambda one: len(one[0]))
        lines = [f"  job {job.id} ({job.state}): {'; '.join(faults)}" for faults, job in nearest[:_SHOWN_MAX]]
        return "\n".join([f"Nearest of {len(nearest)} jobs of this task:", *lines])

    def _keyed(self, app: Detent) -> set[int]:
        """Return the ids of the jobs that have the key, if there is one in the description. Each tenant has its own
        keys."""
        if self.key is None:
            return set()
        return {job.id for job in _jobs(app, self.task, key=self.key, tenant=self.columns.get("tenant", ""))}

    def _faults(self, job: Job[Any], keyed: set[int]) -> list[str]:
        """Return how a job differs from the description."""
        found = list(_differences(self.payload, job.payload, "payload"))
        if self.key is not None and job.id not in keyed:
            found.append(f"its key is not {self.key!r}")
        for name, value in self.columns.items():
            if (actual := getattr(job.row, name)) != value:
                found.append(f"{name} is {_shown(actual)}, expected {_shown(value)}")
        return found


def _differences(wanted: Any, actual: Any, path: str) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(actual, dict):
        for name, value in wanted.items():
            if name not in actual:
                yield f"{path}.{name} is missing, expected {_shown(value)}"
            else:
                yield from _differences(value, actual[name], f"{path}.{name}")
    elif isinstance(wanted, list) and isinstance(actual, list) and len(wanted) == len(actual):
        for place, (one, other) in enumerate(zip(wanted, actual, strict=True)):
            yield from _differences(one, other, f"{path}[{place}]")
    elif wanted != actual or isinstance(wanted, bool) != isinstance(actual, bool):
        yield f"{path} is {_shown(actual)}, expected {_shown(wanted)}"


def _jobs(app: Detent, task: str | None, **filters: Any) -> Iterator[Job[Any]]:
    """Yield the jobs on record, the newest first."""
    after: Any = None
    while True:
        page = app.jobs.list(task=task, limit=_PAGE, after=after, **filters)
        yield from page
        after = page.next
        if after is None:
            return


def _shown(value: Any) -> str:
    shown = value.isoformat(" ") if isinstance(value, datetime) else repr(value)
    return shown if len(shown) <= _VALUE_MAX else f"{shown[:_VALUE_MAX]}…"
