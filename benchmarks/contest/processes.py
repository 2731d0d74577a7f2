"""Workers as the system sees them: memory and processor time of a process and of all below it. Linux only."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["CHILD", "Tree", "family"]

STOP = 10.0
LOOK = 0.2
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
CHILD = "detent.worker.child"


class Tree:
    """Some programs and everything they started."""

    def __init__(self) -> None:
        self._programs: list[subprocess.Popen[bytes]] = []
        self._used: dict[int, float] = {}
        self._look_at = 0.0
        self.peak = 0.0
        """The most megabytes that the largest of the programs had, with all below it."""

    def add(self, program: subprocess.Popen[bytes]) -> None:
        """One more."""
        self._programs.append(program)

    @property
    def tops(self) -> list[int]:
        """The programs themselves, by their numbers."""
        return [program.pid for program in self._programs]

    @property
    def is_alive(self) -> bool:
        """Whether one of them still runs."""
        return any(program.poll() is None for program in self._programs)

    def look(self) -> None:
        """Remember what is used, now and then: looking costs time that is missing elsewhere."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK
            for program in self._programs:
                processes = family(program.pid)
                self.peak = max(self.peak, sum(map(_resident, processes)))
                self._used.update((process, used) for process in processes if (used := _cpu(process)))

    def cpu_seconds(self) -> float:
        """Processor time of all that run or ran, as far as it was seen."""
        self._look_at = 0.0
        self.look()
        return sum(self._used.values())

    def memory(self) -> dict[str, float]:
        """Megabytes resident and proportional (memory that is shared is divided): of the one that supervises, and of
        the largest one below it that runs the user's code."""
        tops = self.tops
        children = [process for top in tops for process in family(top) if CHILD in _words(process)]
        return {
            "supervisor_mb": max(map(_resident, tops), default=0.0),
            "supervisor_shared_mb": max(map(_proportional, tops), default=0.0),
            "child_mb": max(map(_resident, children), default=0.0),
            "child_shared_mb": max(map(_proportional, children), default=0.0),
        }

    def resident(self) -> float:
        """Megabytes that all of them have now."""
        return sum(_resident(process) for top in self.tops for process in family(top))

    def threads(self) -> int:
        """How many threads all of them have now."""
        return sum(_threads(process) for top in self.tops for process in family(top))

    def peak_of_child(self) -> float:
        """The most megabytes that the largest one which runs the user's code has ever had."""
        children = [process for top in self.tops for process in family(top) if CHILD in _words(process)]
        return max(map(_most_resident, children), default=0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Told to stop, and ended where they do not."""
        for program in self._programs:
            _signal(program, signal.SIGTERM)
        for program in self._programs:
            try:
                program.wait(STOP)
            except subprocess.TimeoutExpired:
                _signal(program, signal.SIGKILL)
                program.wait()


def _signal(program: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(program.pid, number)


def family(process: int) -> list[int]:
    """The process and all its descendants."""
    found = [process]
    with suppress(OSError):
        for path in Path(f"/proc/{process}/task").glob("*/children"):
            for child in path.read_text().split():
                found += family(int(child))
    return found


def _words(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    return ""


def _resident(process: int) -> float:
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE / 1e6
    return 0.0


def _most_resident(process: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def _threads(process: int) -> int:
    with suppress(OSError):
        return len(list(Path(f"/proc/{process}/task").iterdir()))
    return 0


def _proportional(process: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1e3
    return 0.0


def _cpu(process: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / TICKS
    return 0.0
