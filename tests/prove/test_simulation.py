"""The simulation: schedules hold, a seed repeats its schedule, and a missing guard is found.

`make test` runs thirty schedules and takes out one guard; `make faults` runs two thousand and takes out five. The
figure P5 runs many more schedules, and P7 takes out many more guards."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from prove.__main__ import BROKEN
from prove.defects import DEFECTS, planted
from prove.results import tally_from
from tests.deadlines import scaled

ROOT = Path(__file__).parents[2]
SECONDS_MAX = scaled(600)
pytestmark = pytest.mark.timeout(SECONDS_MAX + 60)


def simulate(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command. It replaces threads and clocks in the package, so it needs a process of its own."""
    command = [sys.executable, "-m", "prove", "simulate", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def test_every_promise_holds_in_every_schedule(whole: bool) -> None:
    """G1-G4: crashes, machines that stand still, errors, lost answers, clocks that are set, operators who interfere."""
    schedules = "2000" if whole else "30"
    done = simulate("--schedules", schedules, "--processes", "2" if whole else "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{schedules} schedules, ")


def test_a_seed_repeats_its_schedule() -> None:
    first, again = (simulate("--replay", "7").stdout for _ in range(2))
    assert first == again
    assert "all promises held" in first


SHOWN = ("fence", "lease", "one commit", "reaper", "signals")
"""The guards that the simulation alone must miss."""


@pytest.mark.parametrize("name", SHOWN)
def test_a_missing_guard_is_found(name: str, whole: bool) -> None:
    """Within a thousand schedules, by a seed that repeats what it found, with a story in words."""
    if not whole and name != "reaper":
        pytest.skip("make faults")
    done = simulate("--defect", name, "--schedules", "1000", "--processes", "1", "--shrink", "1")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    seed, failure = re.findall(r"^seed (\d+): (.+)$", done.stdout, re.MULTILINE)[0]
    assert f"seed {seed} failed" in done.stdout
    assert "the same in " in done.stdout
    again = simulate("--defect", name, "--replay", seed, "--shrink", "0")
    assert f"seed {seed}: {failure}\n" in again.stdout


@pytest.mark.parametrize("name", ["", "reaper"])
def test_the_figure_says_what_was_injected_and_tells_what_it_found(name: str, tmp_path: Path) -> None:
    """P5, for some seconds: clean, and not clean without a guard."""
    command = [sys.executable, "-m", "prove", "figure", "P5", "--seconds", "4", "--processes", "1"]
    command += ["--to", str(tmp_path / "tally.json")]
    with planted(DEFECTS[name].edits) if name else nullcontext(dict(os.environ)) as environment:
        subprocess.run(command, cwd=ROOT, env=environment, timeout=SECONDS_MAX, check=True)
    tally = tally_from(json.loads((tmp_path / "tally.json").read_text()))
    assert tally.injected["crash of a process"] > 0
    assert tally.covered["transition job: pending -> running (claim)"] > 0
    assert "schedules/s" in tally.notes[0]
    if name:
        assert tally.wrong == len(tally.stories) > 0
        assert "was taken away before it had expired" in tally.stories[0]
        assert "the same in " in tally.stories[0]
    else:
        assert tally.is_clean, tally.stories


def test_a_crash_of_the_simulation_is_no_finding() -> None:
    """The exit code says that a promise was broken, and not just that something went wrong."""
    assert BROKEN not in (0, 1, 2)
