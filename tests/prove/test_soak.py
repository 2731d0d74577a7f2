"""The soak: its verdict finds what grows, in planted samples and in a child process that leaks."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prove.soak.application import LEAK
from prove.soak.drawing import drawn
from prove.soak.run import soak
from prove.soak.sampler import FIGURES, read_samples
from prove.soak.verdict import judge

HOUR = 3600.0
MEMORY, FILES, SIZES = "memory of its own, MiB", "open files", "tables and indexes, MiB"
GROWN = re.compile(r"memory of its own, MiB \(worker, child\) grew by ([0-9.]+) in ")


def samples(change: Callable[[float, dict[str, Any]], None] = lambda _time, _sample: None) -> list[dict[str, Any]]:
    """Return the samples of an hour, in which nothing but chance moves, and what `change` adds."""
    chance = random.Random(7)
    found = []
    for number in range(360):
        values = {
            MEMORY: {"worker": chance.gauss(27, 0.5), "worker, child": chance.gauss(40, 1.5)},
            FILES: {"worker": 20 + chance.randint(0, 3)},
            SIZES: {"tables": chance.gauss(12, 0.6), "indexes": chance.gauss(9, 0.4), FIGURES: number / 10},
            "process ids": {"worker": 1.0, "struck worker": float(number)},
        }
        sample = {"t": number * 10.0, "values": values, "largest": {"job": 6.0, "lease": 1.0}}
        change(number * 10.0, sample)
        found.append(sample)
    return found


def test_an_hour_in_which_nothing_grows_is_flat() -> None:
    assert judge(samples(), HOUR) == []


def test_a_leak_of_a_megabyte_in_ten_minutes_is_found() -> None:
    def leak(time: float, sample: dict[str, Any]) -> None:
        sample["values"][MEMORY]["worker, child"] += time / 600

    (found,) = judge(samples(leak), HOUR)
    assert float(GROWN.match(found)[1]) == pytest.approx(4.5, abs=1.0)  # type: ignore[index]


def test_files_that_are_never_closed_are_found() -> None:
    def leak(time: float, sample: dict[str, Any]) -> None:
        sample["values"][FILES]["worker"] += int(time / 300)

    (found,) = judge(samples(leak), HOUR)
    assert found.startswith("open files (worker) grew by")


def test_a_table_that_grows_is_named() -> None:
    def grow(time: float, sample: dict[str, Any]) -> None:
        sample["values"][SIZES]["tables"] += time / 900
        sample["largest"]["lease"] += time / 900

    (found,) = judge(samples(grow), HOUR)
    assert found.startswith("tables and indexes, MiB (tables) grew by")
    assert found.endswith("Most in lease (+3.0), job (+0.0).")


def test_what_fills_up_to_a_level_and_peaks_after_faults_are_no_growth() -> None:
    def rise(time: float, sample: dict[str, Any]) -> None:
        sample["values"][MEMORY]["worker, child"] += 20 * min(1.0, time / (0.5 * HOUR))
        sample["values"][FILES]["worker"] += 50 if time % 600 < 100 and time > 0.8 * HOUR else 0

    assert judge(samples(rise), HOUR) == []


def test_a_process_that_was_replaced_without_being_struck_is_found() -> None:
    def replace(time: float, sample: dict[str, Any]) -> None:
        sample["values"]["process ids"]["worker"] += time > 1800

    assert judge(samples(replace), HOUR) == ["The process of worker was replaced, although it was never struck."]


def test_a_run_with_too_few_samples_proves_nothing() -> None:
    found = judge(samples()[::40], HOUR)
    assert len(found) == 5
    assert all("samples after the warm-up" in one for one in found)


def test_every_quantity_and_fault_is_drawn() -> None:
    text = drawn("Soak", samples(), [(100.0, "killed a child")], HOUR)
    assert text.count("<polyline") == 6
    assert text.count('class="mark"') == 3
    assert "worker, child: 4" in text


@pytest.mark.timeout(600)
def test_a_leak_in_a_child_process_is_found(tmp_path: Path) -> None:
    """A soak of some seconds in which each plain job leaves 300 kB behind. Everything else is in order."""
    said: list[str] = []
    hours = 20 / 3600
    found = soak(hours, ["sqlite"], seed=1, to=tmp_path, say=said.append, environment={LEAK: "300000"})["sqlite"]
    grown = [float(match[1]) for one in found if (match := GROWN.match(one))]
    assert grown, found
    assert grown[0] > 8
    assert [one for one in found if " grew by " not in one] == []
    kept, _ = read_samples(tmp_path / "sqlite.ndjson")
    assert {"worker", "worker, child", "server", "client"} <= set(kept[-1]["values"][MEMORY])
    assert (tmp_path / "soak-sqlite.svg").read_text().startswith("<svg")
    assert "plain" in said[-1]


@pytest.mark.timeout(900)
def test_a_soak_without_a_leak_is_clean(tmp_path: Path, whole: bool) -> None:
    """Both databases, with faults; part of `make faults`."""
    if not whole:
        pytest.skip("a slice: part of make faults")
    found = soak(240 / 3600, ["sqlite", "postgresql"], seed=2, to=tmp_path, say=lambda _: None)
    assert found == {"sqlite": [], "postgresql": []}
