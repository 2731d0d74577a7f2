"""One call of `detent archive write`: writes the jobs portion by portion, and continues after an interruption."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from detent.archive.file import Unreadable, sync_directory
from detent.archive.writer import Archive, Portion
from detent.model.records import JobPlace, JobRow
from detent.store.contract import Store

__all__ = ["ArchiveRun", "Chosen", "Report"]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the jobs that retention may delete are archived; None means any."""

    state: str | None = None
    queue: str | None = None
    tenant: str | None = None
    task: str | None = None

    def fits(self, job: JobRow) -> bool:
        """Return whether a job is chosen."""
        return (
            self.state in (None, job.state)
            and self.queue in (None, job.queue)
            and self.tenant in (None, job.tenant)
            and self.task in (None, job.task)
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What a call has done. `before` is earlier than asked for if it continued a call that was interrupted."""

    before: datetime
    continued: bool
    files: int
    jobs: int
    deleted: int


class _Mark(msgspec.Struct, frozen=True):
    """How far a call has come."""

    before: datetime
    after: JobPlace


class ArchiveRun:
    """Writes the jobs that ended before a time into a directory.

    With `drop` (actor and reason) each file's jobs are deleted in the transaction that has read them, once the file is
    durable. An interrupted call needs nothing to continue: the jobs that it archived are gone.

    Without `drop`, a file in the directory marks how far the call has come. The next call for the same jobs continues
    there, with the same time. The last portion before an interruption may be written twice.
    """

    def __init__(
        self,
        store: Store,
        directory: Path,
        before: datetime,
        chosen: Chosen,
        drop: tuple[str, str] | None = None,
        watch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._directory = directory
        self._before = before
        self._chosen = chosen
        self._drop = drop
        self._watch = watch
        described = msgspec.json.encode([store.identity_list()[-1].identity, chosen])
        self._mark = directory / f".unfinished-{hashlib.sha256(described).hexdigest()[:16]}.json"

    def run(self, portion: int = Archive.portion_max) -> Report:
        """Write everything. `OSError` if a file cannot be written, `Unreadable` if the mark is damaged."""
        mark = self._begun() if self._drop is None else None
        before, place = (self._before, None) if mark is None else (mark.before, mark.after)
        files = jobs = deleted = 0
        while True:
            done = self._portion(before, place, portion)
            files, jobs, deleted = files + bool(done.written), jobs + done.written, deleted + done.deleted
            self._watch(jobs)
            place = done.next
            if place is None:
                break
            if self._drop is None:
                self._note(_Mark(before, place))
        self._mark.unlink(missing_ok=True)
        return Report(before, mark is not None, files, jobs, deleted)

    def _portion(self, before: datetime, after: JobPlace | None, limit: int) -> Portion:
        archive, fits, drop = Archive(self._directory), self._chosen.fits, self._drop
        states = None if self._chosen.state is None else [self._chosen.state]
        return self._store.together(
            lambda verbs: archive.portion(verbs, before, after, limit, states, fits=fits, drop=drop)
        )

    def _begun(self) -> _Mark | None:
        try:
            return msgspec.json.decode(self._mark.read_bytes(), type=_Mark)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            raise Unreadable(f"{self._mark} is damaged; delete it to begin from the first job") from None

    def _note(self, mark: _Mark) -> None:
        partial = self._mark.with_suffix(".partial")
        with partial.open("wb") as file:
            file.write(msgspec.json.encode(mark))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._mark)
        sync_directory(self._directory)
