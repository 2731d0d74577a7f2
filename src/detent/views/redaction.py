"""Secret fields of jobs: what tasks declare as `secret` is replaced wherever jobs are shown.

Functions get their arguments whole, and so does Python code that reads a job. The HTTP API and the command line show
`[redacted]` instead: in payload, result and payloads of events at the declared paths, and in all texts of the job where
a secret value stands verbatim. What a function tells people, such as an alert, is redacted before it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from detent.model.clock import Clock
from detent.model.copy_records import FORKED_FROM
from detent.model.records import JobRow
from detent.model.service_records import TaskSecrets

__all__ = ["REDACTED", "Redactor", "redact_told"]

S = TypeVar("S", bound=msgspec.Struct)

REDACTED = "[redacted]"
_READ_EVERY = 5.0
_VALUE_MIN = 3
"""Shorter values are replaced at their paths only: as parts of texts they would be found everywhere."""
_JSON_TEXT = frozenset({"payload", "metadata", "result", "progress", "status", "value"})

Path = tuple[str, ...]


class SecretSource(Protocol):
    """What knows the secret fields of tasks, and what steps of a workflow may have seen: a store, for instance."""

    def task_secrets_list(self) -> list[TaskSecrets]: ...

    def workflow_arguments(self, job_id: int) -> list[str]: ...


class Redactor:
    """Redacts jobs and what belongs to them. Knows the secret fields of the tasks that the application declares, and
    of those that other programs have recorded."""

    def __init__(
        self, store: Callable[[], SecretSource], clock: Clock, declared: Callable[[], Mapping[str, Iterable[str]]]
    ) -> None:
        self._store = store
        self._clock = clock
        self._declared = declared
        self._read_at: float | None = None
        self._paths: dict[str, list[Path]] = {}

    def paths(self) -> Mapping[str, list[Path]]:
        """Return the secret fields of each task that has some."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _READ_EVERY:
            found = {task: set(paths) for task, paths in self._declared().items() if paths}
            for one in self._store().task_secrets_list():
                found.setdefault(one.task, set()).update(one.paths)
            self._paths = {task: [tuple(path.split(".")) for path in sorted(paths)] for task, paths in found.items()}
            self._read_at = now
        return self._paths

    def job(self, row: JobRow) -> JobRow:
        """Return a job as it may be shown."""
        paths = self.paths().get(row.task)
        return row if paths is None else _clean_struct(row, paths, self._values(row, paths))

    def of_job(self, row: JobRow, found: Any) -> Any:
        """Return something that belongs to a job as it may be shown: a record, a text, or a list of them."""
        paths = self.paths().get(row.task)
        return found if paths is None else _clean(found, paths, self._values(row, paths))

    def _values(self, row: JobRow, paths: list[Path]) -> list[str]:
        """Return the secret values of a job, the longest first, so that no part of one stays. A workflow has more than
        those of its own arguments, if it has continued with others, or was forked from a workflow with others."""
        has_more = row.attempt > 1 or FORKED_FROM in (row.metadata or "")
        more = self._store().workflow_arguments(row.id) if has_more else []
        below_result = [path[1:] for path in paths if path[0] == "result"]
        of_result = {value for path in below_result for value in _found_at(_decoded(row.result), path)}
        return _values_in([row.payload, row.result, *more], paths, of_result)

    def payload(self, task: str, text: str) -> str:
        """Return the arguments of a call as they may be shown."""
        paths = self.paths().get(task)
        return text if paths is None else _clean_text(text, paths, ())


def redact_told(payload: str, secret: Iterable[str], text: str) -> str:
    """Return a text, or JSON text, that the function of a job tells, without the secret fields of its payload."""
    paths = [tuple(path.split(".")) for path in secret]
    return _clean_text(text, paths, _values_in([payload], paths)) if paths else text


def _values_in(texts: Iterable[str | None], paths: list[Path], more: Iterable[str] = ()) -> list[str]:
    found = {value for text in texts for path in paths for value in _found_at(_decoded(text), path)} | set(more)
    return sorted((one for one in found if len(one) >= _VALUE_MIN), key=len, reverse=True)


def _found_at(value: Any, path: Path) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _found_at(one, path)
    elif not path:
        yield from _leaves(value)
    elif isinstance(value, dict) and path[0] in value:
        yield from _found_at(value[path[0]], path[1:])


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif value is not None and not isinstance(value, bool):
        yield value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _clean(found: Any, paths: list[Path], values: Iterable[str]) -> Any:
    if isinstance(found, msgspec.Struct):
        return _clean_struct(found, paths, values)
    if isinstance(found, list):
        found[:] = [_clean(one, paths, values) for one in found]  # a page stays one, with its `next`
        return found
    return _clean_value(found, paths, values) if isinstance(found, str | dict) else found


def _clean_struct(row: S, paths: list[Path], values: Iterable[str]) -> S:
    changed: dict[str, Any] = {}
    for name in row.__struct_fields__:
        value = getattr(row, name)
        if isinstance(value, str):
            own = [path[1:] for path in paths if path[0] == "result"] if name == "result" else []
            shown = _clean_text(value, [*paths, *own], values) if name in _JSON_TEXT else _replaced(value, values)
            if shown != value:
                changed[name] = shown
    return msgspec.structs.replace(row, **changed) if changed else row


def _clean_text(text: str, paths: list[Path], values: Iterable[str]) -> str:
    value = _decoded(text)
    if value is None:
        return _replaced(text, values)
    return msgspec.json.encode(_clean_value(value, paths, values)).decode()


def _clean_value(value: Any, paths: list[Path], values: Iterable[str]) -> Any:
    if () in paths:
        return REDACTED
    if isinstance(value, dict):
        return {
            _replaced(name, values): _clean_value(one, [path[1:] for path in paths if path[0] == name], values)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [_clean_value(one, paths, values) for one in value]
    if isinstance(value, str):
        return _replaced(value, values)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return REDACTED if msgspec.json.encode(value).decode() in values else value
    return value


def _replaced(text: str, values: Iterable[str]) -> str:
    for value in values:
        text = text.replace(value, REDACTED)
    return text


def _decoded(text: str | None) -> Any:
    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
