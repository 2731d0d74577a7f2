"""The example `nightly_graph`: a graph that waits for a repair."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import scaled

DEMO = Path(__file__).parents[2] / "examples" / "nightly_graph" / "demo.py"
SECONDS_MAX = scaled(300)


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_the_whole_story(tmp_path: Path) -> None:
    """U5: one node fails, a person repairs it, and the graph goes on; nothing is left behind."""
    done = subprocess.run(
        [sys.executable, DEMO],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "facts: it waits for node `orders` (job " in done.stdout
    assert "which is quarantined: " in done.stdout
    assert "publish: 6 facts of 2026-11-18; the run: all its 5 nodes have succeeded" in done.stdout
    assert list(tmp_path.iterdir()) == []
