"""The format of the files of an archive. A file is complete or not there, and shows damage.

A file is compressed with gzip, so `zcat` prints it. The first line is the header; every other line is the JSON object
of a job, with its whole record. The header is a gzip member of its own. It has a fixed size and is written last, so it
knows the checksum of all bytes after it.

The file gets its name when it is complete and synced. Until then its name begins with a dot, and no command reads it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from io import BufferedRandom, BufferedReader
from pathlib import Path

import msgspec

from detent.model.ids import new_file_token
from detent.model.records import JobRow

__all__ = ["Header", "Unreadable", "find_files", "read_header", "read_lines", "sync_directory", "write_file"]

FORMAT = 1
_PADDED = 768
_SUFFIX = ".ndjson.gz"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds: `first_end` and `last_end` are when the first and the last of its jobs ended."""

    archive: int = FORMAT
    identity: str
    written_at: datetime
    jobs: int
    first_id: int
    last_id: int
    first_end: datetime
    last_end: datetime
    bytes: int
    sha256: str


def _packed(text: bytes) -> bytes:
    """Return a gzip member whose size depends on the length of the text only: it is stored, not compressed."""
    return gzip.compress(text.ljust(_PADDED - 1) + b"\n", compresslevel=0, mtime=0)


_HEADER_BYTES = len(_packed(b""))


class Unreadable(Exception):
    """A file cannot be used: which one, and what was found."""


def find_files(directory: Path) -> list[Path]:
    """Return the files of an archive, the oldest first. Files that are not complete are left out."""
    return sorted(path for path in directory.rglob(f"*{_SUFFIX}") if not path.name.startswith("."))


def write_file(
    directory: Path, identity: str, now: datetime, jobs: Iterable[tuple[JobRow, Iterator[bytes]]]
) -> Path | None:
    """Write ended jobs, each with the pieces of its line, into a new file below `directory`. The file is durable when
    this returns; None if there are no jobs. If this raises, nothing is there."""
    folder = directory / f"{now:%Y-%m-%d}"
    if not folder.is_dir():
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_directory(directory)
    name = f"jobs-{now:%H%M%S}-{new_file_token()}{_SUFFIX}"
    partial = folder / f".{name}.partial"
    try:
        # Only the owner may read it: it holds arguments and results in full.
        number = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "w+b") as raw:
            if not _write_all(raw, identity, now, jobs):
                return None
        partial.rename(folder / name)
        sync_directory(folder)
        return folder / name
    finally:
        partial.unlink(missing_ok=True)


def _write_all(
    raw: BufferedRandom, identity: str, now: datetime, jobs: Iterable[tuple[JobRow, Iterator[bytes]]]
) -> bool:
    raw.write(bytes(_HEADER_BYTES))
    ids: list[int] = []
    first = last = None
    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as body:
        for job, pieces in jobs:
            assert job.finished_at is not None
            ids.append(job.id)
            first = min(first or job.finished_at, job.finished_at)
            last = max(last or job.finished_at, job.finished_at)
            body.writelines(pieces)
    if first is None or last is None:
        return False
    size = raw.seek(0, os.SEEK_END) - _HEADER_BYTES
    header = Header(
        identity=identity,
        written_at=now,
        jobs=len(ids),
        first_id=min(ids),
        last_id=max(ids),
        first_end=first,
        last_end=last,
        bytes=size,
        sha256=_digest(raw),
    )
    packed = _packed(msgspec.json.encode(header))
    assert len(packed) == _HEADER_BYTES, "the header is too long"
    raw.seek(0)
    raw.write(packed)
    raw.flush()
    os.fsync(raw.fileno())
    return True


def _digest(raw: BufferedRandom | BufferedReader) -> str:
    raw.seek(_HEADER_BYTES)
    return hashlib.file_digest(raw, "sha256").hexdigest()


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def read_header(path: Path, *, whole: bool = False) -> Header:
    """Return the header of a file after a check that the file is not cut; with `whole`, that nothing in it has changed.
    `Unreadable`."""
    with _opened(path) as raw:
        return _checked(raw, path, whole=whole)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of the jobs in a file, after a check of the whole file. `Unreadable`."""
    with _opened(path) as raw:
        _checked(raw, path, whole=True)
        raw.seek(_HEADER_BYTES)
        with gzip.GzipFile(fileobj=raw) as body:
            yield from body


def _opened(path: Path) -> BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise Unreadable(f"{path} cannot be opened: {error.strerror}") from None


def _checked(raw: BufferedReader, path: Path, *, whole: bool) -> Header:
    try:
        header = msgspec.json.decode(gzip.decompress(raw.read(_HEADER_BYTES)), type=Header)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError):
        raise Unreadable(f"{path} is damaged: its header cannot be read") from None
    if header.archive > FORMAT:
        found = f"its format is {header.archive}, and this version of Detent reads {FORMAT}"
        raise Unreadable(f"{path} was written by a newer version of Detent: {found}")
    found_bytes, wanted = os.fstat(raw.fileno()).st_size, _HEADER_BYTES + header.bytes
    if found_bytes != wanted:
        raise Unreadable(f"{path} is damaged: it has {found_bytes:,} bytes instead of {wanted:,}")
    if whole and _digest(raw) != header.sha256:
        raise Unreadable(f"{path} is damaged: its checksum does not fit its content")
    return header
