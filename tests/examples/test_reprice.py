"""The example `reprice`: look first, then leap, and back."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.deadlines import scaled

REPRICE = Path(__file__).parents[2] / "examples" / "reprice"
SECONDS_MAX = scaled(300)


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_the_whole_story(tmp_path: Path) -> None:
    """B5, B9, U5: two workers share the shop's limit, and it never has to say 429; every ring is changed once and under
    one key in each direction, though the shop fails, falls silent and lies."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
    told = subprocess.run(
        [sys.executable, REPRICE / "demo.py"],
        cwd=tmp_path,
        env=environment | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "rolled_back" in told.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time of the shop, as `now`: what a bucket gets back must not depend on how long the test takes."""
    time = SimpleNamespace(now=0.0)
    time.monotonic = lambda: time.now
    monkeypatch.setattr(importlib.import_module("examples.reprice.shop"), "time", time)
    return time


def opened() -> Any:
    return importlib.import_module("examples.reprice.shop").Shop(1)


def test_the_shop_really_limits(moments: SimpleNamespace) -> None:
    """B5: whoever comes too fast is turned away, so the story above would not end well without the workers' limit."""
    shop = opened()
    assert [shop.wait_for(10) for _ in range(45)] == [0.0] * 40 + [0.5] * 5
    moments.now += 0.5
    assert [shop.wait_for(10) for _ in range(2)] == [0.0, 0.5]


def test_the_shop_counts_points_too(moments: SimpleNamespace) -> None:
    """B5: few requests that cost much are turned away as well, and what was reckoned too much comes back."""
    shop = opened()
    assert [shop.wait_for(100) for _ in range(5)] == [0.0] * 4 + [5.0]
    moments.now += 1
    assert shop.wait_for(100) == 4.0
    shop.give_back(80)
    assert shop.wait_for(100) == 0.0
