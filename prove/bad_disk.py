"""A disk that fails on demand: a VFS of SQLite between SQLite and the real one, made with ctypes.

    with bad_disk() as disk:
        disk.fault = Fault("sync error", at=7)     # the seventh sync fails
        ...                                        # any code that uses sqlite3
        disk.note(promise)                         # what was acknowledged, and when
    files, promises = crash_image(before, disk.operations[:k], random)

The real files are written, and no sync waits for a real disk. Every write, sync, truncation and deletion is also kept
in `operations`. From them follows what a crash of the machine at any moment would have left: all that was synced, and
any part of the rest.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import errno
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, NamedTuple

__all__ = ["FAULTS", "Disk", "Fault", "Operation", "bad_disk", "crash_image", "is_available"]

Kind = Literal["write", "sync", "failed sync", "truncate", "delete", "note"]
_OK, _FULL, _CANTOPEN = 0, 13, 14
_IOERR_READ, _IOERR_WRITE, _IOERR_FSYNC, _IOERR_TRUNCATE = 266, 778, 1034, 1546
_DATABASE_FILES = 0x100 | 0x800 | 0x80000
"""The flags with which SQLite opens a database, its journal and its write-ahead log."""
_SECTOR = 512
_pwrite, _fsync = os.pwrite, os.fsync


class _Failure(NamedTuple):
    call: str
    code: int


FAULTS = {
    "read error": _Failure("read", _IOERR_READ),
    "write error": _Failure("write", _IOERR_WRITE),
    "short write": _Failure("write", _IOERR_WRITE),
    "full disk": _Failure("write", _FULL),
    "full disk after half a write": _Failure("write", _FULL),
    "sync error": _Failure("sync", _IOERR_FSYNC),
    "truncate error": _Failure("truncate", _IOERR_TRUNCATE),
    "open error": _Failure("open", _CANTOPEN),
}


class Operation(NamedTuple):
    """What was done to a file, or what was acknowledged at that moment. A truncation has its length as `offset`."""

    kind: Kind
    path: str
    offset: int = 0
    data: Any = b""


@dataclass(slots=True)
class Fault:
    """From the call number `at` of its sort on, `times` calls fail."""

    name: str
    at: int
    times: int = 1


@dataclass(slots=True)
class Disk:
    """What was done, and what is to fail."""

    operations: list[Operation] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    """How often each call was made, the failed ones included."""
    failed: int = 0
    failed_at: int = 0
    """How many operations there were before the last failure."""
    fault: Fault | None = None

    def note(self, what: Any) -> None:
        """Note that something was acknowledged: a crash from here on may not lose it."""
        self.operations.append(Operation("note", "", 0, what))

    def failure(self, call: str) -> str | None:
        """Count a call. Return the name of the fault if it is to fail."""
        self.calls[call] += 1
        fault = self.fault
        if fault is None or FAULTS[fault.name].call != call:
            return None
        if not fault.at <= self.calls[call] < fault.at + fault.times:
            return None
        self.failed += 1
        self.failed_at = len(self.operations)
        return fault.name


class _Methods(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("close", "read", "write", "truncate", "sync")),
        ("others", ctypes.c_void_p * 13),
    ]


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("path_max", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("next", "name", "data", "open", "delete")),
        ("others", ctypes.c_void_p * 14),
    ]


_INT, _LONG, _PLACE = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
_Open = ctypes.CFUNCTYPE(_INT, _PLACE, _PLACE, _PLACE, _INT, _PLACE)
_Delete = ctypes.CFUNCTYPE(_INT, _PLACE, _PLACE, _INT)
_Transfer = ctypes.CFUNCTYPE(_INT, _PLACE, _PLACE, _INT, _LONG)
_Truncate = ctypes.CFUNCTYPE(_INT, _PLACE, _LONG)
_Sync = ctypes.CFUNCTYPE(_INT, _PLACE, _INT)


class _File(NamedTuple):
    path: str
    read: Any
    write: Any
    truncate: Any


class _Shim:
    """The VFS. It stays registered until the process ends, and only watches while there is a disk."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.disk: Disk | None = None
        self._files: dict[int, _File] = {}
        self._methods: dict[int, _Methods] = {}
        library.sqlite3_vfs_find.restype = _PLACE
        library.sqlite3_vfs_register.argtypes = [_PLACE, _INT]
        self._vfs = _Vfs.from_buffer_copy(_Vfs.from_address(library.sqlite3_vfs_find(None)))
        self._real_open, self._real_delete = _Open(self._vfs.open), _Delete(self._vfs.delete)
        self._calls = (
            _Open(self._open),
            _Delete(self._delete),
            _Transfer(self._read),
            _Transfer(self._write),
            _Truncate(self._truncate),
            _Sync(self._sync),
        )
        self._name = ctypes.create_string_buffer(b"bad-disk")
        places = [ctypes.cast(call, _PLACE).value for call in self._calls]
        self._vfs.name, self._vfs.open, self._vfs.delete = ctypes.addressof(self._name), *places[:2]
        self._places = places[2:]
        library.sqlite3_vfs_register(ctypes.addressof(self._vfs), 1)

    def _open(self, vfs: int, name: int | None, file: int, flags: int, found: int) -> int:
        watched = self.disk is not None and name is not None and flags & _DATABASE_FILES
        if watched and self.disk is not None and self.disk.failure("open") is not None:
            _PLACE.from_address(file).value = None  # so that SQLite does not close what was not opened
            return _CANTOPEN
        code = int(self._real_open(vfs, name, file, flags, found))
        if code == _OK and name is not None and watched:
            at = _PLACE.from_address(file).value or 0
            real = _Methods.from_address(at)
            path = ctypes.string_at(name).decode()
            self._files[file] = _File(path, _Transfer(real.read), _Transfer(real.write), _Truncate(real.truncate))
            if at not in self._methods:
                ours = _Methods.from_buffer_copy(real)
                ours.read, ours.write, ours.truncate, ours.sync = self._places
                self._methods[at] = ours
            _PLACE.from_address(file).value = ctypes.addressof(self._methods[at])
        return code

    def _delete(self, vfs: int, name: int, directory: int) -> int:
        if self.disk is not None:
            self.disk.operations.append(Operation("delete", ctypes.string_at(name).decode()))
        return int(self._real_delete(vfs, name, directory))

    def _read(self, file: int, buffer: int, size: int, offset: int) -> int:
        if self.disk is not None and self.disk.failure("read") is not None:
            return _IOERR_READ
        return int(self._files[file].read(file, buffer, size, offset))

    def _write(self, file: int, buffer: int, size: int, offset: int) -> int:
        found, disk = self._files[file], self.disk
        failure = disk.failure("write") if disk is not None else None
        if failure is not None:
            size = size // 2 if failure in ("short write", "full disk after half a write") else 0
        if size and disk is not None:
            disk.operations.append(Operation("write", found.path, offset, ctypes.string_at(buffer, size)))
        code = int(found.write(file, buffer, size, offset)) if size else _OK
        return FAULTS[failure].code if failure is not None else code

    def _truncate(self, file: int, size: int) -> int:
        found, disk = self._files[file], self.disk
        if disk is not None:
            if disk.failure("truncate") is not None:
                return _IOERR_TRUNCATE
            disk.operations.append(Operation("truncate", found.path, size))
        return int(found.truncate(file, size))

    def _sync(self, file: int, flags: int) -> int:
        disk = self.disk
        if disk is None:
            return _OK
        failed = disk.failure("sync") is not None
        disk.operations.append(Operation("failed sync" if failed else "sync", self._files[file].path))
        return _IOERR_FSYNC if failed else _OK

    def pwrite(self, file: int, data: bytes, offset: int) -> int:
        """Write to a file of a database from Python."""
        path = self._path_of(file)
        if path is not None and self.disk is not None:
            if self.disk.failure("write") is not None:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.disk.operations.append(Operation("write", path, offset, bytes(data)))
        return _pwrite(file, data, offset)

    def fsync(self, file: int) -> None:
        """Sync a file from Python."""
        path = self._path_of(file)
        if path is None or self.disk is None:
            _fsync(file)
            return
        failed = self.disk.failure("sync") is not None
        self.disk.operations.append(Operation("failed sync" if failed else "sync", path))
        if failed:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _path_of(self, file: int) -> str | None:
        """Return the path of a file that SQLite has opened while watched."""
        paths = {one.path for one in self._files.values()}
        return next(
            (path for path in paths if os.path.exists(path) and os.path.samestat(os.fstat(file), os.stat(path))), None
        )


_shim: _Shim | None = None


def is_available() -> bool:
    """Return whether the SQLite of this Python lets itself be reached by its C interface."""
    try:
        return hasattr(ctypes.CDLL(_sqlite3.__file__), "sqlite3_vfs_register")
    except (OSError, AttributeError):
        return False


@contextmanager
def bad_disk() -> Iterator[Disk]:
    """Watch all databases that are opened meanwhile. They are closed before the end."""
    global _shim
    _shim = _shim or _Shim(ctypes.CDLL(_sqlite3.__file__))
    disk = _shim.disk = Disk()
    before = os.pwrite, os.fsync
    replaced: Any = os
    replaced.pwrite, replaced.fsync = _shim.pwrite, _shim.fsync
    try:
        yield disk
    finally:
        replaced.pwrite, replaced.fsync = before
        _shim.disk = None


def crash_image(
    before: Mapping[str, bytes], operations: Sequence[Operation], random: Random
) -> tuple[dict[str, bytes], list[Any]]:
    """Return the files that a crash after these operations leaves, and what was acknowledged by then.

    What was synced is there. Of the rest, it is drawn whether all of it is there, nothing, or any part; the last write
    may have stopped at any sector. What was written before a sync that failed never arrives, unless it is written
    again: the system has given up on it, and the next sync reports success.
    """
    files = {path: bytearray(content) for path, content in before.items()}
    waiting: dict[str, list[Operation]] = {}
    notes: list[Any] = []
    for operation in operations:
        match operation.kind:
            case "write" | "truncate":
                waiting.setdefault(operation.path, []).append(operation)
            case "sync":
                for one in waiting.pop(operation.path, []):
                    _apply(files, one)
            case "failed sync":
                waiting.pop(operation.path, None)
            case "delete":
                waiting.pop(operation.path, None)
                files.pop(operation.path, None)
            case "note":
                notes.append(operation.data)
    share = random.choice((0.0, 0.5, 1.0))
    for pending in waiting.values():
        for one in pending:
            if random.random() < share:
                torn = one is pending[-1] and one.kind == "write" and share < 1 and random.random() < 0.5
                _apply(files, one._replace(data=one.data[: _SECTOR * random.randint(0, 7)]) if torn else one)
    return {path: bytes(content) for path, content in files.items()}, notes


def _apply(files: dict[str, bytearray], operation: Operation) -> None:
    file = files.setdefault(operation.path, bytearray())
    end = operation.offset + len(operation.data)
    if len(file) < end:
        file.extend(bytes(end - len(file)))
    if operation.kind == "truncate":
        del file[operation.offset :]
    else:
        file[operation.offset : end] = operation.data
