"""What a child is doing right now, in memory that its supervisor can read even if the child is dead or hung.

The child writes one entry per slot when a job begins, and clears it when the job ends. All times are from the machine's
monotonic clock, which all processes share. Behind the entries are the child's last heartbeat, the lease it last
claimed under, a flag with which the supervisor forbids further claims, and counters for metrics.
"""

from __future__ import annotations

import mmap
import os
import struct
from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass

from detent.worker.shared_memory_file import open_unnamed_file

__all__ = ["COMMIT_BOUNDS", "Board", "BoardCounters", "BoardEntry"]

_NOT_CALLED = -1.0
_JOB = struct.Struct("=q")
_DOUBLE = struct.Struct("=d")
_FLAG = struct.Struct("=q")
_ENTRY = struct.Struct("=qqddqd")
_DEADLINE_OFFSET = struct.calcsize("=qqd")
_IN_PROCESS_OFFSET = struct.calcsize("=qqdd")
_CALLED_AFTER_OFFSET = struct.calcsize("=qqddq")
COMMIT_BOUNDS = (0.001, 0.0033, 0.01, 0.033, 0.1, 0.33, 1.0, 3.3, 10.0)
"""Upper bounds of the buckets of commit times, in seconds; the last bucket is above all of them."""
_CLAIMS = struct.Struct("=qq")
_WRITES = struct.Struct(f"={2 + len(COMMIT_BOUNDS) + 1}q")
_TRAILER_SIZE = _DOUBLE.size + _JOB.size + _FLAG.size + _CLAIMS.size + _WRITES.size


@dataclass(frozen=True, slots=True)
class BoardEntry:
    """A job in progress.

    `deadline` 0 means none. `in_process` is 1 once the function is called in the child itself; it is 0 while the job is
    prepared or runs in a process of its own. `called_after` is below zero until the function is called.
    """

    job_id: int
    attempt: int
    begun_at: float
    deadline: float
    in_process: int = 0
    called_after: float = _NOT_CALLED

    @property
    def begun_after(self) -> float | None:
        """Seconds from the claim to the call of the function; None if it was not called."""
        return None if self.called_after < 0 else self.called_after


@dataclass(frozen=True, slots=True)
class BoardCounters:
    """What a child has done since it started. `commits` counts batches of results by how long writing them took."""

    claims: int = 0
    claimed: int = 0
    written: int = 0
    commit_micros: int = 0
    commits: tuple[int, ...] = (0,) * (len(COMMIT_BOUNDS) + 1)

    def __add__(self, other: BoardCounters) -> BoardCounters:
        return BoardCounters(
            self.claims + other.claims,
            self.claimed + other.claimed,
            self.written + other.written,
            self.commit_micros + other.commit_micros,
            tuple(map(sum, zip(self.commits, other.commits, strict=True))),
        )


class Board:
    """Shared entries in an unlinked file. Pass `fileno` to the child, and open it there with `Board(fileno, slots)`."""

    def __init__(self, fileno: int, slots: int) -> None:
        self.fileno = fileno
        self.slots = slots
        self._map = mmap.mmap(fileno, slots * _ENTRY.size + _TRAILER_SIZE)
        self._heartbeat_offset = slots * _ENTRY.size
        self._claiming_offset = self._heartbeat_offset + _DOUBLE.size
        self._forbidden_offset = self._claiming_offset + _JOB.size
        self._claims_offset = self._forbidden_offset + _FLAG.size
        self._writes_offset = self._claims_offset + _CLAIMS.size
        self._claims = [0, 0]
        self._writes = [0] * (2 + len(COMMIT_BOUNDS) + 1)
        self._free = list(range(slots - 1, -1, -1))
        self._entries: dict[Hashable, int] = {}

    @classmethod
    def create(cls, slots: int) -> Board:
        """Create an empty board."""
        file = open_unnamed_file()
        os.ftruncate(file, slots * _ENTRY.size + _TRAILER_SIZE)
        return cls(file, slots)

    def begin(
        self,
        holder: Hashable,
        job_id: int,
        attempt: int,
        begun_at: float,
        deadline: float,
        *,
        in_process: bool = False,
        called_after: float = _NOT_CALLED,
    ) -> int:
        """Write an entry for `holder`, which stays until `end`. Safe from any thread.

        There are as many entries as slots. The caller has a slot, and ends the entry before it gives up the slot.
        """
        number = self._entries[holder] = self._free.pop()
        _ENTRY.pack_into(self._map, number * _ENTRY.size, job_id, attempt, begun_at, deadline, in_process, called_after)
        return number

    def end(self, holder: Hashable) -> None:
        """Clear the entry of this holder. A no-op if it has none. Safe from any thread."""
        number = self._entries.pop(holder, None)
        if number is not None:
            _JOB.pack_into(self._map, number * _ENTRY.size, 0)
            self._free.append(number)

    def set_deadline(self, holder: Hashable, deadline: float) -> None:
        """Change when this job must end. The caller makes sure that no thread ends the entry at the same time; the
        same holds for the other setters."""
        _DOUBLE.pack_into(self._map, self._entries[holder] * _ENTRY.size + _DEADLINE_OFFSET, deadline)

    def set_called(self, holder: Hashable, called_after: float) -> None:
        """Note that the function of this job is called now, `called_after` seconds after its claim."""
        _DOUBLE.pack_into(self._map, self._entries[holder] * _ENTRY.size + _CALLED_AFTER_OFFSET, called_after)

    def set_in_process(self, holder: Hashable) -> None:
        """Note that the function of this job is called in the child itself, and may bring it down."""
        _FLAG.pack_into(self._map, self._entries[holder] * _ENTRY.size + _IN_PROCESS_OFFSET, 1)

    def entries(self) -> list[BoardEntry]:
        """Return the jobs in progress."""
        return [BoardEntry(*fields) for fields in _ENTRY.iter_unpack(self._map[: self._heartbeat_offset]) if fields[0]]

    def beat(self, now: float) -> None:
        """Note that the threads of the child get their turns."""
        _DOUBLE.pack_into(self._map, self._heartbeat_offset, now)

    def last_beat(self) -> float:
        """Return the time of the last `beat`; 0 before the first one."""
        found: float = _DOUBLE.unpack_from(self._map, self._heartbeat_offset)[0]
        return found

    def set_claiming(self, lease_id: int) -> None:
        """Note that the child is about to claim under this lease. It may die before it can report what it got."""
        _JOB.pack_into(self._map, self._claiming_offset, lease_id)

    def claiming(self) -> int | None:
        """Return the lease under which the child last claimed."""
        return _JOB.unpack_from(self._map, self._claiming_offset)[0] or None

    def forbid_claims(self) -> None:
        """Forbid the child to claim again. Written by the supervisor; the child sees it at once, however busy it is."""
        _FLAG.pack_into(self._map, self._forbidden_offset, 1)

    def claims_forbidden(self) -> bool:
        """Return whether the child must not claim again."""
        return bool(_FLAG.unpack_from(self._map, self._forbidden_offset)[0])

    def count_claim(self, jobs: int) -> None:
        """Count a claim and the jobs that it returned. By the claiming thread only."""
        self._claims[0] += 1
        self._claims[1] += jobs
        _CLAIMS.pack_into(self._map, self._claims_offset, *self._claims)

    def count_write(self, items: int, seconds: float) -> None:
        """Note that a batch of results was written, and how long that took. By the writing thread only."""
        self._writes[0] += items
        self._writes[1] += int(seconds * 1e6)
        self._writes[2 + bisect_left(COMMIT_BOUNDS, seconds)] += 1
        _WRITES.pack_into(self._map, self._writes_offset, *self._writes)

    def counters(self) -> BoardCounters:
        """Return what the child has counted."""
        claims, claimed = _CLAIMS.unpack_from(self._map, self._claims_offset)
        written, micros, *commits = _WRITES.unpack_from(self._map, self._writes_offset)
        return BoardCounters(claims, claimed, written, micros, tuple(commits))

    def close(self) -> None:
        """Release the memory."""
        self._map.close()
        os.close(self.fileno)
