"""The example `deploy`, and its worker in bash: whatever a ref contains, it stays a ref."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from detent.app.detent import Detent
from detent.testing.postgres import find_binaries
from detent.testing.stores import is_sqlite
from tests.deadlines import scaled
from tests.processes.worker_processes import is_alive, until

DEPLOY = Path(__file__).parents[2] / "examples" / "deploy"
SECONDS_MAX = scaled(300)
pytestmark = pytest.mark.timeout(SECONDS_MAX + 60)
HOSTILE = [
    'it\'s "quoted"',
    "$(touch pwned)`touch pwned`",
    "'; DROP SCHEMA detent CASCADE; --",
    "\\' OR 1=1 \\",
    ":'run' :run %s {} ü -v x",
    "-n --help $HOME * ?",
]
RECORD = """#!/usr/bin/env bash
printf '%s\\0' "$@" >>"$RECORDED"
echo "doing $5"
echo "doing $5"
printf 'not UTF-8: \\377\\n'
"""
SLOW = """#!/usr/bin/env bash
echo begun
(trap '' TERM; exec sleep 600) &
echo $! >"$RECORDED"
while :; do echo still at it; sleep 0.1; done
"""
FAILS = """#!/usr/bin/env bash
printf x >>"$RECORDED"
printf 'compile' >"$OPS_STEP"
echo "error: it's broken" >&2
exit 7
"""

LEAVES = """#!/usr/bin/env bash
printf 'x%.0s' {1..200000}
echo
printf '{"artifacts": ' >"$OPS_RESULT"
"""


@contextmanager
def worker(url: str, directory: Path, workflow: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The bash worker at work; on PostgreSQL it has psql and nothing of ours. Nobody is left behind."""
    script = directory / "workflow"
    script.write_text(workflow)
    script.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")} | {
        "OPS_WORKER": "worker-001",
        "OPS_ATTEMPTS": "2",
        "OPS_BACKOFF": "0",
        "OPS_POLL": "0.1",
        "RECORDED": str(directory / "recorded"),
    }
    if is_sqlite(url):
        environment |= {
            "OPS_DOOR": "detent",
            "OPS_DETENT": f"{sys.executable} -m detent.cli",
            "DETENT_DATABASE_URL": url,
        }
    else:
        psql = next((str(place) for place in find_binaries() if (place / "psql").exists()), "")
        environment |= {"OPS_DOOR": "psql", "DATABASE_URL": url, "PATH": f"{psql}:/usr/bin:/bin"}
    process = subprocess.Popen(
        ["bash", DEPLOY / "worker.sh", *options, script],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=SECONDS_MAX)
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def app(ready_url: str) -> Iterator[Detent]:
    with Detent(ready_url) as app:
        yield app


def test_the_whole_story(postgres_url: str, tmp_path: Path) -> None:
    """U5, O3, W5: trigger, queued run, worker with psql alone, artifacts, health check and live log. On SQLite it is
    part of `detent demo`, which tests/demo plays."""
    done = subprocess.run(
        [sys.executable, DEPLOY / "demo.py", "--database", postgres_url],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the record is healthy" in done.stdout
    assert "built index.html" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_whatever_a_run_contains_does_no_harm(app: Detent, tmp_path: Path, ready_url: str) -> None:
    """W5: quotes, dollars, backticks, backslashes and options go as values through psql, bash and back."""
    refs = HOSTILE if not is_sqlite(ready_url) else HOSTILE[:2]
    runs = [app.ops.queue(f"shop {ref}", f"env {ref}", git_sha=ref, git_ref=ref) for ref in refs]
    with worker(ready_url, tmp_path, RECORD, "--drain") as process:
        said, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, said
    recorded = (tmp_path / "recorded").read_text().split("\0")[:-1]
    assert [recorded[place : place + 5] for place in range(0, len(recorded), 5)] == [
        [run.id, f"shop {ref}", f"env {ref}", ref, ref] for run, ref in zip(runs, refs, strict=True)
    ]
    assert not (tmp_path / "pwned").exists()
    for run, ref in zip(runs, refs, strict=True):
        assert app.ops.get(run).state == "success"
        lines = [event.message for event in app.ops.follow(run, wait=False)][2:]
        assert lines[:2] == [f"doing {ref}"] * 2
        assert lines[2].startswith("not UTF-8: ")
    assert app.record.verify() == []


def test_the_same_run_is_tried_again_and_then_it_has_failed(app: Detent, tmp_path: Path, ready_url: str) -> None:
    """O2, W5: the run that failed, not the next one; nothing stays open."""
    runs = [app.ops.queue("shop", "staging") for _ in range(1 if is_sqlite(ready_url) else 2)]
    with worker(ready_url, tmp_path, FAILS, "--drain") as process:
        said, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, said
    assert (tmp_path / "recorded").read_text() == "xx" * len(runs)
    for one in runs:
        ended = app.ops.get(one)
        assert (ended.state, ended.claimed_by) == ("failed", "worker-001")
        assert ended.metadata == {
            "exit_code": 7,
            "retry_count": 1,
            "step": "compile",
            "error": "the workflow failed",
            "stderr": "error: it's broken",
        }


def test_a_run_ends_whatever_its_workflow_leaves(app: Detent, tmp_path: Path, ready_url: str) -> None:
    """O2, W5: a line that is too long is cut; what cannot be kept with the run fails it, and says so. Both left the run
    open until it went stale."""
    run = app.ops.queue("shop", "staging")
    with worker(ready_url, tmp_path, LEAVES, "--drain") as process:
        said, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, said
    ended = app.ops.get(run)
    assert (ended.state, ended.metadata["step"], ended.metadata["exit_code"]) == ("failed", "result", 0)
    assert "no JSON object" in ended.metadata["stderr"]
    longest = max((event.message for event in app.ops.follow(run, wait=False)), key=len)
    assert len(longest) > 10_000
    assert set(longest) == {"x"}


def test_a_run_that_is_stopped_ends_its_processes(app: Detent, tmp_path: Path, ready_url: str) -> None:
    """J8, W5: the worker hears of it with its next line, ends what it had begun, and takes the next run."""
    run = app.ops.queue("shop", "staging")
    with worker(ready_url, tmp_path, SLOW):
        next(event for event in app.ops.follow(run) if event.message == "still at it")
        child = int((tmp_path / "recorded").read_text())
        app.ops.cancel(run, actor="bob", reason="wrong branch")
        (tmp_path / "recorded").unlink()
        after = app.ops.queue("shop", "staging")
        next(event for event in app.ops.follow(after) if event.message == "begun")
        until(lambda: not is_alive(child), "the end of its child")
        app.ops.cancel(after, actor="bob")
    assert app.ops.get(run).metadata == {"cancelled_by": "bob", "reason": "wrong branch"}


def test_a_worker_that_is_told_to_stop_ends_its_processes(app: Detent, tmp_path: Path, ready_url: str) -> None:
    """W5: at once, in the middle of a workflow that would go on for ever, with a process in it that does not listen."""
    run = app.ops.queue("shop", "staging")
    with worker(ready_url, tmp_path, SLOW) as process:
        next(event for event in app.ops.follow(run) if event.message == "still at it")
        child = int((tmp_path / "recorded").read_text())
        process.terminate()
        process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 143
    until(lambda: not is_alive(child), "the end of its child")
