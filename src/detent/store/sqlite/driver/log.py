"""How long SQLite's write-ahead log is: by what is in it, not by the size of its file.

The file is kept when the log begins anew, since to write over it is cheaper than to lengthen it: a sync that lengthens
a file must write its length too. So the size says nothing. Each frame carries two numbers of the generation it belongs
to, which the head of the file has too: a look at one place tells whether this generation has come that far.
"""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["KEPT_BYTES", "Log"]

_FRAMES_MAX = 1000
_HEAD = 32
_FRAME_HEAD = 24
_GENERATION = slice(16, 24)
_GENERATION_OF_FRAME = 8
KEPT_BYTES = 5 << 20
"""What is kept of the file: the frames of a log that is copied back in time, and a large transaction more."""


class Log:
    """The log beside a database. SQLite takes no locks on this file, so it may be opened and closed by others; and it
    stays the same file for as long as one connection is open."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}-wal"
        self._file: int | None = None
        self._generation = b""
        self._frames = _FRAMES_MAX

    def is_long(self) -> bool:
        """Whether it should be copied back."""
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        head = os.pread(self._file, _HEAD, 0)
        if head[_GENERATION] != self._generation:
            self._generation, self._frames = head[_GENERATION], _FRAMES_MAX
        frame = _HEAD + self._frames * (_FRAME_HEAD + int.from_bytes(head[8:12], "big"))
        found = os.pread(self._file, len(self._generation), frame + _GENERATION_OF_FRAME)
        return found != b"" and found == self._generation

    def copied(self) -> None:
        """Where a reader keeps it from beginning anew, the next try waits until it has grown as much once more."""
        self._frames += _FRAMES_MAX

    def close(self) -> None:
        """Let go of the file."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                os.close(file)
