"""What came out, as it is kept: every sample of every round, and what the machine was."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from benchmarks.contest.contender import Contender, Database
from benchmarks.contest.works import Size, Values

__all__ = ["Results", "Sample", "facts"]


@dataclass(frozen=True, slots=True)
class Sample:
    """What one contender reached at one work in one round."""

    round: int
    database: Database
    work: str
    contender: str
    values: Values


@dataclass(slots=True)
class Results:
    """A whole run."""

    made: dict[str, str]
    size: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Who did not take part, and why."""
    samples: list[Sample] = field(default_factory=list)

    def rounds(self, database: Database, work: str, contender: str, value: str) -> dict[int, float]:
        """That value in every round that has it."""
        return {
            one.round: one.values[value]
            for one in self.samples
            if (one.database, one.work, one.contender) == (database, work, contender) and value in one.values
        }

    def write(self, path: Path) -> None:
        """As JSON, one sample a line, figures to four digits."""
        kept = {"made": self.made, "size": self.size, "missing": self.missing}
        head = json.dumps(kept, indent=2, ensure_ascii=False).removesuffix("\n}")
        lines = ",\n    ".join(
            json.dumps(_rounded(dataclasses.asdict(one)), ensure_ascii=False) for one in self.samples
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{head},\n  "samples": [\n    {lines}\n  ]\n}}\n')

    @classmethod
    def of(cls, runs: Sequence[Self]) -> Self:
        """Several runs as one, which was made where and when the first was."""
        missing = {name: why for one in runs for name, why in one.missing.items()}
        return cls(runs[0].made, runs[0].size, missing, [sample for one in runs for sample in one.samples])

    @classmethod
    def read(cls, path: Path) -> Self:
        """What `write` wrote."""
        found = json.loads(path.read_text())
        return cls(**{**found, "samples": [Sample(**one) for one in found["samples"]]})


def _rounded(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "values": {name: float(f"{value:.4g}") for name, value in sample["values"].items()}}


def facts(server: str, size: Size, missing: Iterable[tuple[Contender, str]]) -> Results:
    """An empty one, which knows where and when it is made."""
    made = {
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": server,
        "psycopg": version("psycopg"),
    }
    return Results(made, dataclasses.asdict(size), {one.name: why for one, why in missing})
