"""Many processes at the first touch of a database, and one that dies in the middle of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from detent.store.open import open_store
from prove.upgrades.described_schema import described
from tests.deadlines import scaled
from tests.migrations.schemas import known, taken

ROOT = Path(__file__).parents[2]
PROCESSES = 12
SECONDS_MAX = scaled(60)


def starter(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.migrations.starter", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """How a process ended, and its last words."""
    with process:
        try:
            out, err = process.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return process.returncode, out, err


def test_twelve_processes_start_at_once_on_an_empty_database(database_url: str, another_url: str) -> None:
    """L8: each of them ends up with a ready database, and every step was taken once."""
    code, ids, complaint = said(starter(database_url, "many", str(PROCESSES)))
    assert (code, complaint) == (0, "")
    assert sorted(map(int, ids.split())) == list(range(1, PROCESSES + 1))
    assert taken(database_url) == [step.version for step in known(database_url)]
    with closing(open_store(another_url)) as store:
        store.ready()
        for _ in range(PROCESSES):
            store.ids_reserve(1)
    assert described(database_url) == described(another_url)


def test_a_migrator_killed_in_the_middle_leaves_nothing(database_url: str, another_url: str) -> None:
    """L8: a schema is there whole or not at all, and whoever comes next begins as if nobody had been there."""
    code, count, complaint = said(starter(another_url, "count"))
    assert (code, complaint) == (0, "")
    statements = int(count)
    assert statements >= 4
    for last in sorted({statements // 4, statements // 2, statements * 3 // 4}):
        code, _, complaint = said(starter(database_url, "die", str(last)))
        assert (code, complaint) == (-signal.SIGKILL, ""), f"after {last} of {statements} statements"
        assert described(database_url) == {}, f"after {last} of {statements} statements"
    with closing(open_store(database_url)) as store:
        store.ready()
        assert store.verify() == []
    assert described(database_url) == described(another_url)
