"""Reads jobs back from the files of an archive, one at a time, and searches them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from detent.archive.file import Header, Unreadable, find_files, read_header, read_lines
from detent.archive.writer import JSON_TEXT
from detent.model.clock import SystemClock
from detent.model.records import EventRow, ExecutionRow, JobDetails, JobRow, TransitionRow
from detent.model.service_records import TaskSecrets
from detent.model.workflow_records import SignalRow, StepRow
from detent.views.redaction import Redactor
from detent.views.workflows import shown_step

__all__ = ["ArchivedJob", "Found", "Wanted", "search"]

S = TypeVar("S", bound=msgspec.Struct)


class _Line(msgspec.Struct):
    job: msgspec.Raw
    executions: list[msgspec.Raw]
    transitions: list[msgspec.Raw]
    events: list[msgspec.Raw]
    details: msgspec.Raw = msgspec.Raw(b"null")
    steps: list[msgspec.Raw] = []
    signals: list[msgspec.Raw] = []
    secret: tuple[str, ...] = ()
    arguments: list[str] = []


@dataclass(frozen=True, slots=True)
class ArchivedJob:
    """A job with its whole record, without the secret fields that its task had when it was archived."""

    job: JobRow
    details: JobDetails
    executions: list[ExecutionRow]
    transitions: list[TransitionRow]
    events: list[EventRow]
    steps: list[StepRow]
    signals: list[SignalRow]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search looks for; None means any. `text` is in an error or in an event. Times are those of the end."""

    text: str | None = None
    id: int | None = None
    key: str | None = None
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None
    state: str | None = None
    correlation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def may_be_in(self, header: Header) -> bool:
        """Return whether the header of a file allows that it has such a job."""
        return (
            (self.id is None or header.first_id <= self.id <= header.last_id)
            and (self.since is None or header.last_end >= self.since)
            and (self.until is None or header.first_end < self.until)
        )

    def fits(self, found: ArchivedJob) -> bool:
        """Return whether a job is wanted."""
        job = found.job
        return (
            self.id in (None, job.id)
            and self.key in (None, found.details.key)
            and self.task in (None, job.task)
            and self.queue in (None, job.queue)
            and self.tenant in (None, job.tenant)
            and self.state in (None, job.state)
            and self.correlation_id in (None, job.correlation_id)
            and (self.since is None or (job.finished_at is not None and job.finished_at >= self.since))
            and (self.until is None or (job.finished_at is not None and job.finished_at < self.until))
            and (self.text is None or any(self.text in text for text in _texts(found)))
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A job that was found, and its file; or a file that cannot be read, and why."""

    path: Path
    archived: ArchivedJob | None
    damage: str | None = None


def search(directory: Path, wanted: Wanted, *, newest_first: bool = False) -> Iterator[Found]:
    """Yield the jobs that are wanted, file by file. A file that cannot be read is yielded too, and the search goes on.
    One job is in memory at a time."""
    files = find_files(directory)
    for path in reversed(files) if newest_first else files:
        try:
            if wanted.may_be_in(read_header(path)):
                for number, line in enumerate(read_lines(path), 2):
                    found = _parsed(path, number, line)
                    if wanted.fits(found):
                        yield Found(path, found)
        except Unreadable as error:
            yield Found(path, None, str(error))


def _texts(found: ArchivedJob) -> Iterator[str]:
    yield found.job.error or ""
    for execution in found.executions:
        yield execution.error or ""
    for event in found.events:
        yield event.message
        yield event.payload or ""


def _parsed(path: Path, number: int, line: bytes) -> ArchivedJob:
    try:
        raw = msgspec.json.decode(line, type=_Line)
        job = _record(raw.job, JobRow)
        none = JobDetails(job_id=job.id, key=None, worker=None, progress=None)
        found = ArchivedJob(
            job=job,
            details=none if bytes(raw.details) == b"null" else _record(raw.details, JobDetails),
            executions=[_record(one, ExecutionRow) for one in raw.executions],
            transitions=[_record(one, TransitionRow) for one in raw.transitions],
            events=[_record(one, EventRow) for one in raw.events],
            steps=[shown_step(_record(one, StepRow)) for one in raw.steps],
            signals=[_record(one, SignalRow) for one in raw.signals],
        )
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Unreadable(f"line {number} of {path} is not the record of a job: {error}") from None
    return _redacted(found, raw) if raw.secret else found


def _record(raw: msgspec.Raw, kind: type[S]) -> S:
    """Return a record as it was before it was written: embedded JSON is text again."""
    values: dict[str, Any] = {"nonce": 0}
    for name, value in msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).items():
        is_text = name in JSON_TEXT and bytes(value) != b"null"
        values[name] = bytes(value).decode() if is_text else msgspec.json.decode(value)
    return msgspec.convert(values, kind, strict=False)


@dataclass(frozen=True, slots=True)
class _SecretsOfLine:
    """What a line says about the secret fields of its job."""

    task: str
    paths: tuple[str, ...]
    arguments: list[str]

    def task_secrets_list(self) -> list[TaskSecrets]:
        return [TaskSecrets(task=self.task, paths=self.paths)]

    def workflow_arguments(self, job_id: int) -> list[str]:
        return self.arguments


def _redacted(found: ArchivedJob, raw: _Line) -> ArchivedJob:
    source = _SecretsOfLine(found.job.task, raw.secret, raw.arguments)
    redactor = Redactor(lambda: source, SystemClock(), dict)

    def clean(value: Any) -> Any:
        return redactor.of_job(found.job, value)

    return ArchivedJob(
        job=redactor.job(found.job),
        details=clean(found.details),
        executions=clean(found.executions),
        transitions=clean(found.transitions),
        events=clean(found.events),
        steps=clean(found.steps),
        signals=clean(found.signals),
    )
