"""Many processes at the first touch of a database, and one that dies in the middle of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from detent.store.open import open_store
from tests.migrations.schemas import described, known, taken

ROOT = Path(__file__).parents[2]
PROCESSES = 12
SECONDS_MAX = 60


def starter(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.migrations.starter", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str], line: str = "") -> tuple[int, str, str]:
    """How a process ended, after it was told `line`, and its last words."""
    out, err = process.communicate(line, SECONDS_MAX)
    return process.returncode, out, err


def test_twelve_processes_start_at_once_on_an_empty_database(database_url: str, another_url: str) -> None:
    """L8: each of them ends up with a ready database, and every step was taken once."""
    processes = [starter(database_url) for _ in range(PROCESSES)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n", said(process)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [said(process) for process in processes] == [(0, "ready\n", "")] * PROCESSES
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    assert taken(database_url) == [step.version for step in known(database_url)]
    with closing(open_store(another_url)) as store:
        store.ready()
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
