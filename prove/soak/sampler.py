"""Samples of a soak: what all processes and the database use now, as one line of JSON every few seconds."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections import defaultdict
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from detent.testing.stores import plain_connection
from prove.soak.application import started_file
from prove.soak.places import Place
from prove.soak.programs import Programs

__all__ = ["FIGURES", "Sampler", "read_samples"]

FIGURES = "figures of the past"
"""The tables with figures of each minute, which are kept for six hours, and of each hour, kept for 31 days."""
_FIGURES = ("transition_rate", "transition_hour")
_SAMPLES_MIN = 60
"""Minimum number of samples of a run. A run that is too short for them at the shortest pause has fewer."""
_PAUSE_MIN, _PAUSE_MAX = 0.5, 10.0
_LARGEST = 12
_MIB = 1 << 20


class Sampler:
    """Writes samples to a file until it is stopped."""

    def __init__(self, file: Path, place: Place, programs: Programs, folder: Path, seconds: float) -> None:
        self._file, self._place, self._programs = file, place, programs
        self._began_at = self._last_at = time.monotonic()
        self._pause = min(_PAUSE_MAX, max(_PAUSE_MIN, seconds / (2 * _SAMPLES_MIN)))
        self._starts = _Growing(started_file(folder))
        self._logs = {program.name: _Growing(program.log) for program in programs.all}
        self._effects = 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run)
        self.missed = 0
        """Samples that the database did not answer."""

    def start(self) -> None:
        """Begin to take samples."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def note_fault(self, what: str) -> None:
        """Write down a fault."""
        self._write({"fault": what})

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            values = self._of_processes() | self._rates()
            largest: dict[str, float] = {}
            try:
                more, largest = self._of_database()
                values |= more
            except Exception:  # whatever the driver says while the server is down
                self.missed += 1
            self._write({"values": values, "largest": largest})

    def _write(self, what: dict[str, Any]) -> None:
        line = json.dumps({"t": round(time.monotonic() - self._began_at, 2), **what})
        with self._lock, self._file.open("a") as file:
            file.write(line + "\n")

    def _of_processes(self) -> dict[str, dict[str, float]]:
        """Processes of the same role are added up; the process id is that of the newest."""
        found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        newest: dict[str, float] = {}
        for pid, role in self._programs.roles().items():
            with suppress(OSError, KeyError):
                memory = _rollup(pid)
                found["memory of its own, MiB"][role] += memory["Anonymous"] / 1024
                found["proportional memory, MiB"][role] += memory["Pss"] / 1024
                found["open files"][role] += len(list(Path(f"/proc/{pid}/fd").iterdir()))
                found["threads"][role] += len(list(Path(f"/proc/{pid}/task").iterdir()))
                newest[role] = max(pid, newest.get(role, 0.0))
        return {**{quantity: dict(lines) for quantity, lines in found.items()}, "process ids": newest}

    def _of_database(self) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        tables, indexes = self._place.sizes()
        both = {**tables, **indexes}
        figures = [name for name in both if any(one in name for one in _FIGURES)]
        largest = sorted(both, key=lambda name: both[name], reverse=True)[:_LARGEST]
        values = self._place.figures()
        values["tables and indexes, MiB"] = {
            "tables": sum(size for name, size in tables.items() if name not in figures) / _MIB,
            "indexes": sum(size for name, size in indexes.items() if name not in figures) / _MIB,
            FIGURES: sum(both[name] for name in figures) / _MIB,
        }
        return values, {name: round(both[name] / _MIB, 3) for name in largest}

    def _rates(self) -> dict[str, dict[str, float]]:
        now = time.monotonic()
        seconds, self._last_at = now - self._last_at, now
        starts = [float(line.split()[1]) for line in self._starts.lines()]
        effects = self._effects
        with suppress(Exception), closing(plain_connection(self._place.url)) as connection:
            effects = connection.execute("SELECT count(*) FROM soak_effect").fetchone()[0]
        found = {
            "jobs and effects a second": {"all": (len(starts) + effects - self._effects) / seconds},
            "log lines a second": {name: len(log.lines()) / seconds for name, log in self._logs.items()},
        }
        self._effects = effects
        if starts:
            ordered = sorted(starts)
            found["pick-up, ms"] = {
                "p50": statistics.median(ordered),
                "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
            }
        return found


class _Growing:
    """The lines that were added to a file since it was last asked."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0

    def lines(self) -> list[str]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._place)
            whole = file.read()
        whole = whole[: whole.rfind(b"\n") + 1]
        self._place += len(whole)
        return whole.decode(errors="replace").splitlines()


def _rollup(pid: int) -> dict[str, int]:
    """Return what the system says about the memory of a process, in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}


def read_samples(file: Path) -> tuple[list[dict[str, Any]], list[tuple[float, str]]]:
    """Return the samples, and the faults with their times."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [one for one in lines if "values" in one], [(one["t"], one["fault"]) for one in lines if "fault" in one]
