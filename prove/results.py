"""The results of a run of `make prove`, and the file in which they are kept."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sqlite3
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from prove.figure import Tally, Tier

__all__ = ["ROOT", "Result", "Results", "machine_facts", "tally_from", "tally_to"]

ROOT = Path(__file__).parents[1]


@dataclass(slots=True)
class Result:
    """What one figure came to."""

    id: str
    title: str
    tally: Tally
    seconds: float

    @property
    def count(self) -> int:
        """Return how often something was injected."""
        return sum(self.tally.injected.values())


@dataclass(slots=True)
class Results:
    """A whole run."""

    made: dict[str, Any]
    """Tier, seed, date, seconds, versions, commit, machine."""
    results: list[Result] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    """Points that this tier must reach and did not reach often enough, and how often it did."""

    @property
    def is_clean(self) -> bool:
        """Whether something ran, nothing was found, and everything was reached that must be."""
        return bool(self.results) and not self.missing and all(result.tally.is_clean for result in self.results)

    @property
    def covered(self) -> Counter[str]:
        """Return how often each point was reached, by all figures together."""
        return sum((result.tally.covered for result in self.results), Counter())

    def write(self, path: Path) -> None:
        """Write them as JSON."""
        rows = [
            {"id": one.id, "title": one.title, "seconds": round(one.seconds, 1), **tally_to(one.tally)}
            for one in self.results
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {"made": self.made, "is_clean": self.is_clean, "missing": self.missing, "figures": rows}
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        found = json.loads(path.read_text())
        results = [Result(one["id"], one["title"], tally_from(one), one["seconds"]) for one in found["figures"]]
        return cls(found["made"], results, found["missing"])


def tally_to(tally: Tally) -> dict[str, Any]:
    """Return a tally as JSON."""
    return {one.name: getattr(tally, one.name) for one in dataclasses.fields(Tally)}


def tally_from(found: dict[str, Any]) -> Tally:
    """Return a tally from JSON; other keys are ignored."""
    known = {name: found[name] for name in (one.name for one in dataclasses.fields(Tally))}
    return Tally(**{**known, "injected": Counter(found["injected"]), "covered": Counter(found["covered"])})


def machine_facts(tier: Tier, seed: int, postgresql: str) -> dict[str, Any]:
    """Return where and of what a run is made."""
    return {
        "tier": tier,
        "seed": seed,
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "detent": version("detent"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": postgresql,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "machine": platform.machine(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _commit() -> str:
    """Return the commit that is checked out, and whether files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + changed
