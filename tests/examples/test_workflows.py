"""The example `workflows`: a crash, an undo, a signal, an agent and many children."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import scaled

WORKFLOWS = Path(__file__).parents[2] / "examples" / "workflows"
SECONDS_MAX = scaled(300)


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_the_whole_story(tmp_path: Path) -> None:
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
