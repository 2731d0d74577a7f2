"""`detent demo` from outside, as `make demo` runs it: it ends by itself, and leaves only what it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from detent import Detent
from tests.deadlines import scaled

DEMO = [sys.executable, "-m", "detent.cli", "demo"]
SECONDS_MAX = scaled(600)
pytestmark = pytest.mark.timeout(SECONDS_MAX + 60)


def environment(temporary: Path) -> dict[str, str]:
    """Its directory is to be made where we can see it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
    return clean | {"TMPDIR": str(temporary)}


def left_behind(temporary: Path) -> Iterator[str]:
    """Processes that were started for that directory and still live."""
    mark = os.fsencode(f"TMPDIR={temporary}")
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0") and (entry / "cmdline").read_bytes():
                yield entry.name
        except OSError:
            continue


def test_everything_is_done_once_although_a_worker_is_killed(tmp_path: Path) -> None:
    """G1, G2: the demo kills a worker that holds jobs; nothing is lost, nothing is done twice."""
    done = subprocess.run(
        [*DEMO, "--directory", "kept"],
        env=environment(tmp_path),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert table["TASK"] == ["JOBS", "SUCCEEDED", "DEAD", "ATTEMPTS", "MOST", "LEDGER"]
    for task, jobs in {"photo": "160", "charge": "80", "receipt": "80", "fetch": "80"}.items():
        assert (table[task][:3], table[task][5]) == ([jobs, jobs, "0"], jobs)
    assert table["report"][:3] == ["4", "4", "0"]
    assert table["poison"] == ["1", "0", "1", "3", "3", "0"]
    assert int(table["fetch"][3]) >= 80 + 2 * 20, "every fourth fails twice"
    assert "with SIGKILL" in done.stderr
    assert "Nothing was lost" in done.stdout
    played = done.stdout.partition("Examples that succeeded: ")[2].strip(".\n").split(", ")
    assert {"deploy", "diamonds", "ingest"} <= set(played), "U5: in a checkout the examples join"
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]
    with Detent(f"sqlite:///{tmp_path}/kept/demo.db") as app:
        kinds = {(type(run).__name__, run.state) for run in app.runs.list()}
        assert kinds == {("BatchRun", "rolled_back"), ("PipelineRun", "completed")}, "`make console` shows them"
        assert {run.state for run in app.ops.list()} == {"success", "failed"}
    assert list(left_behind(tmp_path)) == []


def test_an_interrupted_demo_takes_its_workers_along(tmp_path: Path) -> None:
    process = subprocess.Popen(
        DEMO, env=environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process.stderr as said:
        assert "started demo-1" in said.readline()
        process.send_signal(signal.SIGINT)
        said.read()
    assert process.wait(SECONDS_MAX) == 130
    assert list(tmp_path.iterdir()) == []
    assert list(left_behind(tmp_path)) == []


def test_a_database_of_the_users_is_not_for_the_demo(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--database", "sqlite:///mine.db"],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 2
    assert "--database" in done.stderr
    assert list(tmp_path.iterdir()) == []
