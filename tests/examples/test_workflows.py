"""The example `workflows`: a crash, an undo, a signal, an agent and many children."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from detent.testing.harness import Harness
from tests.deadlines import scaled

WORKFLOWS = Path(__file__).parents[2] / "examples" / "workflows"
SECONDS_MAX = scaled(300)


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_the_whole_story(tmp_path: Path) -> None:
    """D1, D2: steps, waits, signals and two hundred children across a crash, without a worker in between."""
    done = subprocess.run(
        [sys.executable, WORKFLOWS / "demo.py"],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for told in (
        "order of a lamp: 'parcel with lamp', although its worker died after charging",
        "order of a piano: quarantined",
        "agent: 'tea: a0, b0'",
        "thumbnails: '195 rendered, 5 damaged'",
        "for signal 'decision', until ",
        "expense: 'booked'",
        "steps of job 3: reserve, charge, charge~undo, reserve~undo, ~undone",
        "every step once, every wait without a worker; the record is healthy",
    ):
        assert told in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_agent_goes_on_after_a_lease_that_expired(
    detent: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine so busy that a lease expired, the only attempt was used up, and `make demo` failed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(WORKFLOWS))
    example = importlib.import_module("workflows")
    detent.use(example.app)
    job = example.agent.enqueue("tea")
    detent.crash(job, at="started")
    detent.work(skip=True)
    assert job.refresh().result == "tea: a0, b0"
