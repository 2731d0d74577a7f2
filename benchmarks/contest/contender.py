"""Who takes part. One way to describe a contender: its name, its database, the program behind it, what it can do."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from detent.testing.postgres import find_binaries

__all__ = ["CONTENDERS", "PEERS", "ROOT", "Contender", "Database"]

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers"

Database = Literal["PostgreSQL", "SQLite"]


@dataclass(frozen=True, slots=True)
class Contender:
    """A program that serves some of the commands in `benchmarks.contenders`."""

    name: str
    database: Database
    program: Sequence[str]
    """What to run; a command and a count are added."""
    works: frozenset[str]
    """The works it takes part in."""
    left: str | None = None
    """SQL for whether any job is left to do. None where a job is gone as soon as its body runs. It may have a place for
    `{and_since}`, a condition that leaves out jobs of earlier drains: looking at millions of those would take longer
    than the drain."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What its program finds in the environment."""
    most: int = 10**9
    """A slow one does fewer jobs, so that a run comes to an end; rates are what is compared."""
    is_peer: bool = True
    home: Path = ROOT
    """The checkout that its program is part of."""

    def missing(self) -> str | None:
        """Why it cannot take part here; None where it can."""
        program = self.program[0]
        if self.name == "before" and self.home == ROOT:
            return "BENCH_BEFORE names no checkout of another version, with its environment"
        if shutil.which(program) is None:
            return f"no {Path(program).name}" if program == "node" else "not installed; `make peers` does it"
        if program == "node" and not (PEERS / "node" / "node_modules").is_dir():
            return "not installed; `make peers` does it"
        if self.name == "pgbench" and shutil.which("pgbench", path=self.settings["BENCH_BINARIES"]) is None:
            return "no pgbench among the binaries of PostgreSQL"
        return None


def _ours(module: str) -> Sequence[str]:
    return (sys.executable, "-m", f"benchmarks.contenders.{module}")


def _peer(home: str, module: str = "") -> Sequence[str]:
    return (str(PEERS / home / "bin" / "python"), "-m", f"benchmarks.contenders.{module or home}")


def _binaries() -> str:
    return next((str(path) for path in find_binaries() if (path / "pgbench").exists()), "")


_DETENT = frozenset(
    {
        "one",
        "callers",
        "bulk",
        "drain",
        "drain by two",
        "writes",
        "pipeline",
        "batch",
        "pick-up",
        "snapshot",
        "memory",
        "idle",
        "tenants",
        "keys",
        "retention",
        "console",
        "filled",
    }
)
_STEPS = frozenset({"steps", "crowd", "whole of 1", "whole of 10"})
_WAITS = frozenset({"signals", "fan-out", "long history", "sleepers", "wake-ups"})
_BEFORE = Path(os.environ.get("BENCH_BEFORE", ROOT))
_UNFINISHED = "state = 'pending' OR state = 'running'"

CONTENDERS: tuple[Contender, ...] = (
    Contender(
        "Detent",
        "PostgreSQL",
        _ours("detent"),
        _DETENT,
        left=f"SELECT EXISTS (SELECT FROM detent.job WHERE ({_UNFINISHED}){{and_since}})",
        settings={"BENCH_SLOTS": "16", "BENCH_DRAIN": "1"},
        is_peer=False,
    ),
    Contender(
        "floor",
        "PostgreSQL",
        _ours("floor"),
        frozenset({"one", "bulk", "drain", "pick-up"}),
        left=f"SELECT EXISTS (SELECT FROM floor.job WHERE {_UNFINISHED})",
        settings={"BENCH_DRAIN": "1"},
        is_peer=False,
    ),
    Contender(
        "graphile-worker",
        "PostgreSQL",
        ("node", "benchmarks/contenders/graphile.mjs"),
        frozenset({"one", "bulk", "drain", "drain by two", "pick-up", "snapshot"}),
        left="SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)",
        settings={"BENCH_NODE": str(PEERS / "node")},
    ),
    Contender(
        "pgqueuer",
        "PostgreSQL",
        _peer("pgqueuer"),
        frozenset({"one", "bulk", "drain", "drain by two", "pick-up", "snapshot"}),
        left="SELECT EXISTS (SELECT FROM pgqueuer)",
    ),
    Contender(
        "procrastinate",
        "PostgreSQL",
        _peer("procrastinate"),
        frozenset({"one", "bulk", "drain", "pick-up"}),
        left="SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
        most=2_000,
    ),
    Contender(
        "DBOS",
        "PostgreSQL",
        _peer("dbos"),
        frozenset({"one", "bulk", "drain", "writes", "pick-up"}),
        left="SELECT EXISTS (SELECT FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING'))",
        most=1_000,
    ),
    Contender(
        "Detent",
        "PostgreSQL",
        _ours("detent_workflows"),
        _STEPS | _WAITS | {"transact"},
        left=f"SELECT EXISTS (SELECT FROM detent.job WHERE {_UNFINISHED})",
        settings={"BENCH_SLOTS": "16", "BENCH_DRAIN": "1"},
        is_peer=False,
    ),
    Contender(
        "floor",
        "PostgreSQL",
        _ours("floor_steps"),
        _STEPS,
        left=f"SELECT EXISTS (SELECT FROM floor.job WHERE {_UNFINISHED})",
        is_peer=False,
    ),
    Contender(
        "DBOS",
        "PostgreSQL",
        _peer("dbos", "dbos_workflows"),
        _STEPS | {"transact", "signals", "fan-out", "sleepers"},
        left="SELECT EXISTS (SELECT FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING'))",
        most=1_000,
    ),
    Contender(
        "Absurd",
        "PostgreSQL",
        _peer("absurd"),
        _STEPS | {"signals", "fan-out"},
        left="SELECT EXISTS (SELECT FROM absurd.t_bench WHERE state IN ('pending', 'running'))",
        most=2_000,
    ),
    Contender(
        "before",
        "PostgreSQL",
        (str(_BEFORE / ".venv/bin/python"), "-m", "benchmarks.contenders.detent"),
        frozenset({"drain"}),
        left=f"SELECT EXISTS (SELECT FROM detent.job WHERE {_UNFINISHED})",
        settings={"BENCH_SLOTS": "16", "BENCH_DRAIN": "1"},
        is_peer=False,
        home=_BEFORE,
    ),
    Contender("direct SQL", "PostgreSQL", _ours("direct"), frozenset({"pipeline"}), is_peer=False),
    Contender(
        "pgbench",
        "PostgreSQL",
        _ours("each"),
        frozenset({"writes"}),
        settings={"BENCH_BINARIES": _binaries()},
        is_peer=False,
    ),
    Contender(
        "Detent",
        "SQLite",
        _ours("detent"),
        (_DETENT - {"snapshot"}) | {"inside"},
        left=f"SELECT EXISTS (SELECT 1 FROM detent_job WHERE ({_UNFINISHED}){{and_since}})",
        settings={"BENCH_SLOTS": "16", "BENCH_DRAIN": "1"},
        is_peer=False,
    ),
    Contender(
        "floor",
        "SQLite",
        _ours("floor"),
        frozenset({"one", "bulk", "drain"}),
        left=f"SELECT EXISTS (SELECT 1 FROM job WHERE {_UNFINISHED})",
        is_peer=False,
    ),
    Contender(
        "huey",
        "SQLite",
        _peer("huey"),
        frozenset({"one", "drain", "pick-up", "inside"}),
        most=5_000,
    ),
    Contender(
        "persist-queue",
        "SQLite",
        _peer("persistqueue"),
        frozenset({"one", "drain"}),
        most=5_000,
    ),
    Contender(
        "Detent",
        "SQLite",
        _ours("detent_workflows"),
        _STEPS | _WAITS | {"transact"},
        left=f"SELECT EXISTS (SELECT 1 FROM detent_job WHERE {_UNFINISHED})",
        settings={"BENCH_SLOTS": "16", "BENCH_DRAIN": "1"},
        is_peer=False,
    ),
    Contender(
        "floor",
        "SQLite",
        _ours("floor_steps"),
        _STEPS,
        left=f"SELECT EXISTS (SELECT 1 FROM job WHERE {_UNFINISHED})",
        is_peer=False,
    ),
    Contender(
        "DBOS",
        "SQLite",
        _peer("dbos", "dbos_workflows"),
        _STEPS | {"transact", "signals", "fan-out", "sleepers"},
        left="SELECT EXISTS (SELECT 1 FROM workflow_status WHERE status IN ('ENQUEUED', 'PENDING'))",
        most=500,
    ),
    Contender(
        "before",
        "SQLite",
        (str(_BEFORE / ".venv/bin/python"), "-m", "benchmarks.contenders.detent"),
        frozenset({"drain"}),
        left=f"SELECT EXISTS (SELECT 1 FROM detent_job WHERE {_UNFINISHED})",
        settings={"BENCH_SLOTS": "16", "BENCH_DRAIN": "1"},
        is_peer=False,
        home=_BEFORE,
    ),
    Contender("direct SQL", "SQLite", _ours("direct"), frozenset({"pipeline"}), is_peer=False),
    Contender(
        "one sync a job",
        "SQLite",
        _ours("each"),
        frozenset({"writes"}),
        is_peer=False,
    ),
)
