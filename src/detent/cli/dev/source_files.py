"""Source files that are watched for changes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["SourceFiles"]

_State = dict[Path, tuple[int, int]]


class SourceFiles:
    """Files, each with the time and size that it had when it was last looked at."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._seen = _look(files)

    def changed(self) -> list[Path]:
        """Return the files that have changed, or are gone, since the last look."""
        now = _look(self._seen)
        found = [file for file, state in now.items() if state != self._seen[file]]
        self._seen = now
        return found

    def add(self, files: Iterable[Path]) -> None:
        """Watch these files too. Those that are watched already stay as they were last seen."""
        self._seen |= _look(file for file in files if file not in self._seen)


def _look(files: Iterable[Path]) -> _State:
    return {file: _state(file) for file in files}


def _state(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
