"""Writes jobs to a file before retention deletes them (J16): one line of JSON per job, with all its records.

A file belongs to one worker and one day. It is a gzip file with one member per portion, so it grows by whole portions
only. It is synced before the transaction that deletes the jobs commits. If that transaction fails, or the worker dies
in between, the jobs are still there and are written again later under the same ids: twice, but never lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from detent.errors import InvalidSetting
from detent.model.records import JobRow
from detent.store.contract import Verbs

if TYPE_CHECKING:
    from gzip import GzipFile

__all__ = ["Archive", "check_directory"]

_EVENTS = 1000
_JSON_TEXT = frozenset({"payload", "metadata", "result"})


def check_directory(path: str) -> None:
    """Raise `InvalidSetting` if the directory does not exist or is not writable."""
    if not os.path.isdir(path) or not os.access(path, os.W_OK | os.X_OK):
        raise InvalidSetting("retention_archive", repr(path), "an existing directory with write permission")


class Archive:
    """The archive files of one worker."""

    def __init__(self, directory: str, worker_id: int) -> None:
        self._directory = Path(directory)
        self._worker_id = worker_id

    def write(self, verbs: Verbs, ids: Sequence[int], now: datetime) -> None:
        """Write these jobs as `verbs` finds them, durably. If that raises `OSError`, the file is as it was before."""
        with self._member(now) as file:
            for job in verbs.job_get(ids):
                if job is not None:
                    file.writelines(_line(verbs, job))

    @contextmanager
    def _member(self, now: datetime) -> Iterator[GzipFile]:
        from gzip import GzipFile

        path = self._directory / f"jobs-{now:%Y-%m-%d}-{self._worker_id}.jsonl.gz"
        is_new = not path.exists()
        with path.open("ab") as raw:
            begun = raw.tell()
            try:
                with GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as member:
                    yield member
                raw.flush()
                os.fsync(raw.fileno())
            except BaseException:
                raw.truncate(begun)
                raise
        if is_new:
            _sync_directory(self._directory)


def _line(verbs: Verbs, job: JobRow) -> Iterator[bytes]:
    """Yield the line of a job in pieces: it may have more events than should be in memory at once."""
    yield b'{"job":' + _json(job)
    for name, records in (
        ("executions", verbs.job_executions(job.id)),
        ("transitions", verbs.transitions("job", str(job.id))),
    ):
        yield f',"{name}":['.encode() + b",".join(map(_json, records)) + b"]"
    yield b',"events":['
    after, comma = 0, b""
    while events := verbs.job_events(job.id, after, _EVENTS):
        yield comma + b",".join(map(_json, events))
        after, comma = events[-1].seq, b","
    yield b"]}\n"


def _json(record: msgspec.Struct) -> bytes:
    """Encode a record as the command line shows it: ids are strings, and stored JSON is not encoded again."""
    fields = {name: _value(name, getattr(record, name)) for name in record.__struct_fields__ if name != "nonce"}
    return msgspec.json.encode(fields)


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "id" or name.endswith("_id"):
        return str(value)
    return _stored_json(value) if name in _JSON_TEXT else value


def _stored_json(text: str) -> msgspec.Raw | str:
    """Return stored JSON as it is; damaged text as a string, so that the line stays valid."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return msgspec.Raw(text.encode())


def _sync_directory(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
