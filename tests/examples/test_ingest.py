"""The example `ingest`: quarantine, and a person who decides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import scaled

INGEST = Path(__file__).parents[2] / "examples" / "ingest"
SECONDS_MAX = scaled(300)


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_the_whole_story(tmp_path: Path) -> None:
    """U5, J10, E4: put aside, mended, overridden, given up; refused what nobody may do; nothing is left behind."""
    done = subprocess.run(
        [sys.executable, INGEST / "demo.py"],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "34 documents, each once; one override, marked as such; the record is healthy" in done.stdout
    for refusal in (
        "to undo a success: job",
        "to force without a reason: reason",
        "to set a state by hand: CHECK constraint failed: job_",
    ):
        assert refusal in done.stdout
    assert list(tmp_path.iterdir()) == []
