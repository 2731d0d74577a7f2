"""F6: every order of moves, in a small size; and that a missing guard is found there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from prove.defects import DEFECTS, planted
from prove.exhaustive.moves import Bounds
from prove.exhaustive.search import Search
from prove.figure import Budget
from tests.deadlines import scaled

ROOT = Path(__file__).parents[2]


def test_no_order_of_moves_breaks_a_promise() -> None:
    """C1, C2, C4, C6, J1, J5, J6, J7: a slice; `make prove` walks through all of it."""
    search = Search(Bounds(attempts=(2, 1), releases=0, has_people=False), Budget("commit", seed=1, seconds=scaled(3)))
    tally = search.run()
    assert tally.is_clean, tally.stories
    assert len(search.states) > 50
    assert tally.injected["moves that changed something"] > len(search.states)
    assert "transition job: running -> succeeded (finish)" in tally.covered


def test_a_missing_fence_is_found(tmp_path: Path) -> None:
    """With the moves that lead there."""
    command = [sys.executable, "-m", "prove", "figure", "exhaustive_model", "--seed", "1", "--seconds", str(scaled(60))]
    with planted(DEFECTS["fence"].edits) as environment:
        subprocess.run([*command, "--to", str(tmp_path / "to")], cwd=ROOT, env=environment, check=True)
    found = json.loads((tmp_path / "to").read_text())
    assert found["wrong"] + found["doubled"] > 0
    assert "after enqueue" in found["stories"][0]
