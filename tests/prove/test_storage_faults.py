"""Bad disks: a slice of the figure holds, and it notices what is not synced and a log with a hole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.driver.write_ahead_log import WriteAheadLog
from prove.bad_disk import Fault
from prove.figure import Budget, Tally
from prove.figures import storage_faults


def test_a_slice_holds(whole: bool) -> None:
    """G6, G8: each fault at a few calls, crashes, cut and copied files, a reader, forks."""
    tally = storage_faults.run(Budget("commit", 3, 120.0 if whole else 2.5))
    assert tally.is_clean, tally.stories
    assert tally.injected["crash that loses what was not synced"] >= 2
    assert tally.injected["log cut at a byte"] == 20
    assert tally.injected["fork with open connections"] == 4


def lives(tmp_path: Path, faults: list[Fault | None]) -> Tally:
    """The lives with these faults, each with two crashes."""
    tally = Tally()
    template = storage_faults._template(tmp_path)
    with storage_faults._small_checkpoints():
        for n, fault in enumerate(faults):
            storage_faults._one_life(template, tmp_path / "life", fault, Random(n), tally)
    return tally


def test_commits_that_are_not_synced_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Database.write

    def unsynced(self: Database, work: Callable[[Any], Any], *, synced: bool = True) -> Any:
        return write(self, work, synced=False)

    monkeypatch.setattr(Database, "write", unsynced)
    tally = lives(tmp_path, [None] * 3)
    assert tally.lost
    assert "was acknowledged, and is gone" in tally.stories[0]


def test_a_log_with_a_hole_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: WriteAheadLog) -> None:
        self.is_doubtful = False

    monkeypatch.setattr(WriteAheadLog, "write_again", forget)
    assert lives(tmp_path, [Fault("sync error", at) for at in (6, 10)]).lost
