"""Writes finished jobs to files, and deletes what it has written (J16)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from detent.archive.file import write_file
from detent.errors import InvalidSetting
from detent.model.records import JobDetails, JobPlace, JobRow
from detent.model.workflow_records import WorkflowRow
from detent.store.contract import Verbs

__all__ = ["JSON_TEXT", "Archive", "Portion", "check_directory"]

JSON_TEXT = frozenset({"payload", "metadata", "result"})
"""Fields that hold JSON as text. In a line their JSON is embedded."""

_JOBS_AT_ONCE = 50
_ROWS_AT_ONCE = 1000


def check_directory(path: str) -> None:
    """Raise `InvalidSetting` if the directory does not exist or is not writable."""
    if not os.path.isdir(path) or not os.access(path, os.W_OK | os.X_OK):
        raise InvalidSetting("retention_archive", repr(path), "an existing directory with write permission")


@dataclass(frozen=True, slots=True)
class Portion:
    """What was done in one transaction: jobs written and deleted, and the place to continue after; None at the end."""

    written: int
    deleted: int
    next: JobPlace | None


class Archive:
    """A directory into which jobs are written, as its new files."""

    portion_max = 500
    """Jobs that are looked at in one transaction, and the most in a file. Small, because on SQLite no other connection
    can write meanwhile."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)

    def portion(
        self,
        verbs: Verbs,
        before: datetime,
        after: JobPlace | None,
        limit: int,
        states: Sequence[str] | None,
        *,
        fits: Callable[[JobRow], bool] = lambda _: True,
        drop: tuple[str, str | None] | None = None,
    ) -> Portion:
        """Write the next jobs that ended before `before` and fit. With `drop` (actor and reason) delete them.

        Call it in a transaction, so that exactly the written jobs are deleted. The file is durable before the deletion
        commits. If that fails, the jobs are still there, and are written again later: twice, but never lost. If this
        raises `OSError`, nothing is written.
        """
        found = verbs.job_prunable(before, after, limit, states)
        written = self.write(verbs, found.ids, verbs.now(), fits) if found.ids else []
        deleted = verbs.job_drop(written, before, *drop) if drop is not None and written else 0
        return Portion(len(written), deleted, found.next)

    def write(
        self, verbs: Verbs, ids: Sequence[int], now: datetime, fits: Callable[[JobRow], bool] = lambda _: True
    ) -> list[int]:
        """Write those of these jobs that fit into a file. Return their ids."""
        written: list[int] = []

        def lines() -> Iterator[tuple[JobRow, Iterator[bytes]]]:
            for job, pieces in _lines(verbs, ids, fits):
                written.append(job.id)
                yield job, pieces

        write_file(self._directory, verbs.identity_list()[-1].identity, now, lines())
        return written


def _lines(
    verbs: Verbs, ids: Sequence[int], fits: Callable[[JobRow], bool]
) -> Iterator[tuple[JobRow, Iterator[bytes]]]:
    secrets = {one.task: one.paths for one in verbs.task_secrets_list()}
    for start in range(0, len(ids), _JOBS_AT_ONCE):
        jobs = [job for job in verbs.job_get(ids[start : start + _JOBS_AT_ONCE]) if job is not None and fits(job)]
        chosen = [job.id for job in jobs]
        details = {one.job_id: one for one in verbs.job_details(chosen)} if jobs else {}
        workflows = {one.job_id: one for one in verbs.workflow_get(chosen) if one is not None} if jobs else {}
        for job in jobs:
            secret = secrets.get(job.task, ())
            yield job, _line(verbs, job, details.get(job.id), workflows.get(job.id), secret)


def _line(
    verbs: Verbs, job: JobRow, details: JobDetails | None, workflow: WorkflowRow | None, secret: Sequence[str]
) -> Iterator[bytes]:
    """Yield the line of a job in pieces: it may have more events than should be in memory at once."""
    yield b'{"job":' + _json(job)
    if details is not None:
        yield b',"details":' + _json(details)
    yield _list("executions", verbs.job_executions(job.id))
    yield _list("transitions", verbs.transitions("job", str(job.id)))
    yield from _long_list("events", _events(verbs, job.id))
    if workflow is not None:
        yield b',"workflow":' + _json(workflow)
        yield from _long_list("steps", _steps(verbs, workflow))
        yield from _long_list("signals", _signals(verbs, job.id))
    if secret:
        arguments = [] if workflow is None else verbs.workflow_arguments(job.id)
        yield b',"secret":' + msgspec.json.encode(secret) + b',"arguments":' + msgspec.json.encode(arguments)
    yield b"}\n"


def _events(verbs: Verbs, job_id: int) -> Iterator[Sequence[msgspec.Struct]]:
    after = 0
    while events := verbs.job_events(job_id, after, _ROWS_AT_ONCE):
        yield events
        after = events[-1].seq


def _steps(verbs: Verbs, workflow: WorkflowRow) -> Iterator[Sequence[msgspec.Struct]]:
    """Yield the steps of every generation that is on record."""
    for generation in range(1, workflow.generation + 1):
        after: str | None = None
        while True:
            page = verbs.step_list(workflow.job_id, generation=generation, after=after, limit=_ROWS_AT_ONCE)
            yield page.rows
            if (after := page.next) is None:
                break


def _signals(verbs: Verbs, job_id: int) -> Iterator[Sequence[msgspec.Struct]]:
    after = 0
    while signals := verbs.signal_list(job_id, after=after, limit=_ROWS_AT_ONCE):
        yield signals
        after = signals[-1].seq


def _list(name: str, records: Sequence[msgspec.Struct]) -> bytes:
    return f',"{name}":['.encode() + b",".join(map(_json, records)) + b"]"


def _long_list(name: str, pages: Iterator[Sequence[msgspec.Struct]]) -> Iterator[bytes]:
    yield f',"{name}":['.encode()
    comma = b""
    for page in pages:
        if page:
            yield comma + b",".join(map(_json, page))
            comma = b","
    yield b"]"


def _json(record: msgspec.Struct) -> bytes:
    """Encode a record as the command line shows it: ids are strings, and stored JSON is not encoded again."""
    fields = {name: _value(name, getattr(record, name)) for name in record.__struct_fields__ if name != "nonce"}
    return msgspec.json.encode(fields)


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "id" or name.endswith("_id"):
        return str(value)
    return _stored_json(value) if name in JSON_TEXT else value


def _stored_json(text: str) -> msgspec.Raw | str:
    """Return stored JSON as it is; damaged text as a string, so that the line stays valid."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return msgspec.Raw(text.encode())
