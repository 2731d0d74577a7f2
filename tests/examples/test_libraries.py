"""The examples in `libraries`: Detent beside one other library each, run as a reader would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import scaled

LIBRARIES = Path(__file__).parents[2] / "examples" / "libraries"
SECONDS_MAX = scaled(100)


def told(example: str, tmp_path: Path, *arguments: str) -> str:
    """What an example prints. It leaves nothing behind."""
    (tmp_path / "home").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", LIBRARIES / example, *arguments],
        cwd=tmp_path / "home",
        env=environment | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["home"]
    return done.stdout


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_pydantic_models(tmp_path: Path) -> None:
    """J2: models as arguments and results of a task and a workflow, in a step and in a signal."""
    assert told("pydantic_models.py", tmp_path).splitlines() == [
        "pack.order.lines[0].count: found 0; allowed: greater than 0",
        "Receipt(order_id=7, total=Decimal('28.50'), approved_by='')",
        "Receipt(order_id=7, total=Decimal('180.0'), approved_by='ana')",
    ]
