"""What the bodies of jobs leave for whoever measures: how many ran, when the first did, how long a pick-up took.

Every process that runs bodies has a small file in the directory BENCH_BOARD, mapped into memory: a mark costs well
under a microsecond and no system call.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Board", "mark", "marks", "measured"]

_LAYOUT = struct.Struct("2d")
_LOCK = threading.Lock()


class _Mine:
    """This process's own file, made with the first mark."""

    def __init__(self) -> None:
        directory = Path(os.environ["BENCH_BOARD"])
        self.samples = directory / f"samples-{os.getpid()}"
        with (directory / f"marks-{os.getpid()}").open("w+b") as file:
            file.truncate(_LAYOUT.size)
            self.marks = memoryview(mmap.mmap(file.fileno(), _LAYOUT.size)).cast("d")


_mine: _Mine | None = None


def marks(count: int, sent: float = 0.0) -> None:
    """Note that `count` bodies have begun now. `sent` is the time of the enqueue, if it is measured."""
    global _mine
    with _LOCK:
        if _mine is None:
            _mine = _Mine()
        found = _mine.marks
        if not found[0]:
            found[1] = time.time()
        if sent:
            with _mine.samples.open("a") as file:
                file.write(f"{time.time() - sent:.7f}\n")
        found[0] += count


def mark(sent: float = 0.0) -> None:
    """One body has begun: the body of every no-op job."""
    marks(1, sent)


def measured(seconds: Iterable[float]) -> None:
    """Keep times that a body has measured itself, all at once, so that writing them down is no part of them."""
    global _mine
    with _LOCK:
        if _mine is None:
            _mine = _Mine()
        with _mine.samples.open("a") as file:
            file.writelines(f"{one:.7f}\n" for one in seconds)


class Board:
    """All that was marked below a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def total(self) -> int:
        """How many bodies began so far."""
        return int(sum(found[0] for found in self._read()))

    def first(self) -> float:
        """When the first one did, by the clock on the wall; refuses an empty board."""
        return min(found[1] for found in self._read() if found[0])

    def samples(self) -> list[float]:
        """Seconds from enqueue to body, or as a body has measured them; those of one process in their order."""
        return [float(line) for path in self._directory.glob("samples-*") for line in path.read_text().split()]

    def _read(self) -> list[tuple[float, float]]:
        texts = [path.read_bytes() for path in self._directory.glob("marks-*")]
        return [
            (count, first) for text in texts if len(text) == _LAYOUT.size for count, first in [_LAYOUT.unpack(text)]
        ]
