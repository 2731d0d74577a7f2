"""Which tests a run takes. The rules look at folders and fixtures; no test is named.

| run | tests |
|---|---|
| `make quick` (`--quick`) | on SQLite only, and none that starts a process |
| `make test` | all; those above the store run on one of the two databases |
| `make faults` (`--whole`) | the whole of the long proofs; every test on both databases |
"""

from __future__ import annotations

import os
import re
import subprocess
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NoReturn

import pytest

__all__ = ["NO_POSTGRES", "ONE_DATABASE", "in_quick_run", "is_for_processes", "other_database", "without_processes"]

NO_POSTGRES = "needs PostgreSQL: not part of make quick"
_NO_PROCESSES = "starts a process: not part of make quick"
_TESTS = Path(__file__).parent
_FOR_PROCESSES = (
    "benchmarks",
    "cli",
    "console",
    "demo",
    "docs",
    "examples",
    "faults",
    "integrations",
    "mutants",
    "packaging",
    "processes",
)
"""Folders of tests that start processes. Elsewhere a test that starts one skips itself in a quick run."""
ONE_DATABASE = (
    *("acceptance", "alerts", "app", "archive", "batch", "cli", "client", "docs", "examples", "faults", "http"),
    *("integrations", "ops", "pipeline"),
    *("processes", "schedule", "store/invariants", "testing", "views", "worker"),
)
"""Folders of tests above the store. tests/contract and tests/twin prove that both databases behave alike, so an
ordinary run takes half of these tests on SQLite, and the others on PostgreSQL. `make faults` takes both. The same holds
for the invariants: each is one query for both databases."""
_ON_POSTGRES = {"store/invariants": 4}
"""In these folders one test of so many runs on PostgreSQL instead of one of two: there it takes ten times as long."""
_DATABASE = re.compile(r"(?<=[\[-])(sqlite|postgres)(?=[\]-])")


def is_for_processes(path: Path) -> bool:
    """Return whether a file or folder belongs to the tests that start processes."""
    return path.is_relative_to(_TESTS) and path.relative_to(_TESTS).parts[:1] in {(name,) for name in _FOR_PROCESSES}


def in_quick_run(item: pytest.Item) -> bool:
    """Return whether a test belongs to a quick run: it needs no PostgreSQL, and its folder is not one of processes."""
    fixtures: Iterable[str] = getattr(item, "fixturenames", ())
    needs_postgres = "postgres_cluster" in fixtures or "postgres" in _DATABASE.findall(item.nodeid)
    return not needs_postgres and not is_for_processes(item.path)


def other_database(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return one of every two tests that differ only in their database. The name of the test decides which one."""
    pairs: defaultdict[str, dict[str, pytest.Item]] = defaultdict(dict)
    folders = tuple(f"tests/{name}/" for name in ONE_DATABASE)
    for item in items:
        if item.nodeid.startswith(folders) and len(databases := _DATABASE.findall(item.nodeid)) == 1:
            pairs[_DATABASE.sub("*", item.nodeid)][databases[0]] = item
    return {pair[_other(name)] for name, pair in pairs.items() if len(pair) == 2}


def _other(name: str) -> str:
    """Return the database on which an ordinary run does not take a test."""
    each = next((each for folder, each in _ON_POSTGRES.items() if name.startswith(f"tests/{folder}/")), 2)
    return "sqlite" if zlib.crc32(name.encode()) % each == 0 else "postgres"


@contextmanager
def without_processes() -> Iterator[None]:
    """Skip a test as soon as it starts a process."""

    def skip(*_args: object, **_options: object) -> NoReturn:
        pytest.skip(_NO_PROCESSES)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", skip)
        patch.setattr(BaseProcess, "start", skip)
        patch.setattr(os, "fork", skip)
        yield
