"""What a child is doing right now, in memory that its supervisor can read when the child is dead or deaf.

One line of six numbers for each slot: job, attempt, when it began, and by when it must end (both by the machine's
monotonic clock, which all processes share), whether its function is called in the child itself, and how many seconds
after its claim the function was called (below zero: not yet). The child writes a
line in one step when a job begins, and takes the job out of it when that ends. Behind the lines stand its pulse and
the lease that it last asked for.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["Board", "Line", "nameless_file"]

_LINE = struct.Struct("=qqddqd")
_DEADLINE = struct.Struct("=d")
_DEADLINE_AT = struct.calcsize("=qqd")
_HERE = struct.Struct("=q")
_HERE_AT = struct.calcsize("=qqdd")
_AFTER = struct.Struct("=d")
_AFTER_AT = struct.calcsize("=qqddq")
_NOT_CALLED = -1.0
_PULSE = struct.Struct("=d")
_CLAIMING = struct.Struct("=q")
_BEHIND = _PULSE.size + _CLAIMING.size
_JOB = struct.Struct("=q")


@dataclass(frozen=True, slots=True)
class Line:
    """A job in progress; `deadline` 0 means none; `here` is 0 while it is prepared or in a process of its own; its
    function was called `after` seconds from its claim, or not yet if that is below zero."""

    job_id: int
    attempt: int
    begun_at: float
    deadline: float
    here: int = 0
    after: float = _NOT_CALLED

    @property
    def begun_after(self) -> float | None:
        """Seconds from the claim to the call of the function; None if it was not called."""
        return None if self.after < 0 else self.after


class Board:
    """Shared lines over an unlinked file; pass `fileno` to the child and open it there with `Board.at`."""

    def __init__(self, fileno: int, slots: int) -> None:
        self.fileno = fileno
        self.slots = slots
        self._map = mmap.mmap(fileno, slots * _LINE.size + _BEHIND)
        self._free = list(range(slots - 1, -1, -1))
        self._lines: dict[Hashable, int] = {}

    @classmethod
    def create(cls, slots: int) -> Board:
        """A new empty board."""
        file = nameless_file()
        os.ftruncate(file, slots * _LINE.size + _BEHIND)
        return cls(file, slots)

    def begin(
        self,
        holder: Hashable,
        job_id: int,
        attempt: int,
        begun_at: float,
        deadline: float,
        *,
        here: bool = False,
        after: float = _NOT_CALLED,
    ) -> int:
        """Write a line for `holder`, until `end`. There are as many lines as slots: the caller has a slot, and ends
        the line before or together with the slot. Safe from any thread."""
        number = self._lines[holder] = self._free.pop()
        _LINE.pack_into(self._map, number * _LINE.size, job_id, attempt, begun_at, deadline, here, after)
        return number

    def beat(self, now: float) -> None:
        """The threads of the child get their turns."""
        _PULSE.pack_into(self._map, self.slots * _LINE.size, now)

    def pulse(self) -> float:
        """When that was last so; 0 before the first time."""
        found: float = _PULSE.unpack_from(self._map, self.slots * _LINE.size)[0]
        return found

    def set_claiming(self, lease_id: int) -> None:
        """The child is about to claim under this lease, and may die before it can tell what it was given."""
        _CLAIMING.pack_into(self._map, self.slots * _LINE.size + _PULSE.size, lease_id)

    def claiming(self) -> int | None:
        """The last one it asked for."""
        return _CLAIMING.unpack_from(self._map, self.slots * _LINE.size + _PULSE.size)[0] or None

    def set_deadline(self, holder: Hashable, deadline: float) -> None:
        """Change by when this job must end. The caller makes sure that its line does not end meanwhile; so with the
        other setters."""
        _DEADLINE.pack_into(self._map, self._lines[holder] * _LINE.size + _DEADLINE_AT, deadline)

    def set_called(self, holder: Hashable, after: float) -> None:
        """The function of this job is called, so long after its claim."""
        _AFTER.pack_into(self._map, self._lines[holder] * _LINE.size + _AFTER_AT, after)

    def set_here(self, holder: Hashable) -> None:
        """The function of this job is called in this process, and may bring it down."""
        _HERE.pack_into(self._map, self._lines[holder] * _LINE.size + _HERE_AT, 1)

    def end(self, holder: Hashable) -> None:
        """Empty the line of this holder. A no-op if it has none. Safe from any thread."""
        number = self._lines.pop(holder, None)
        if number is not None:
            _JOB.pack_into(self._map, number * _LINE.size, 0)
            self._free.append(number)

    def lines(self) -> list[Line]:
        """What is in progress, as last written."""
        return [Line(*parts) for parts in _LINE.iter_unpack(self._map[: self.slots * _LINE.size]) if parts[0]]

    def close(self) -> None:
        """Let go of the memory."""
        self._map.close()
        os.close(self.fileno)


def nameless_file() -> int:
    """Return a new file that no directory names, in memory if the system has such files."""
    with suppress(AttributeError, OSError):  # not on every system, and not everywhere allowed
        return os.memfd_create("detent-board")
    # Only here: it brings a good deal of the library with it.
    import tempfile

    with tempfile.TemporaryFile(prefix="detent-board-") as file:
        return os.dup(file.fileno())
