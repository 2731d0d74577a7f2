"""The contest of workflows runs: a few of them through the real worker and through the floor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.contest.programme import GROUPS
from benchmarks.contest.run import contest
from benchmarks.contest.works import QUICK, WorkflowSize
from benchmarks.places import Places
from detent.testing.postgres import Cluster

FEW = WorkflowSize(
    steps=20, at_once=10, each=2, transacts=32, whole=10, signals=3, sleepers=20, lead=20.0, children=(5, 10), long=20
)
TINY = replace(QUICK, drained=40, writes=16, idle=0.5, workflows=FEW)


@pytest.mark.timeout(1200)
def test_workflows_of_ours_come_to_their_end(postgres_cluster: Cluster, tmp_path: Path, whole: bool) -> None:
    """An ordinary run takes one work, which the floor does as well; each costs several starts of processes."""
    works = GROUPS["workflows"] if whole else ("crowd",)
    said: list[str] = []
    found = contest(Places(postgres_cluster, tmp_path), TINY, works=works, names=["Detent", "floor"], say=said.append)
    assert not found.missing, said
    reached = {(one.database, one.contender, one.work) for one in found.samples}
    assert {(base, "Detent", work) for base in ("PostgreSQL", "SQLite") for work in works} <= reached
    assert {(base, "floor", "crowd") for base in ("PostgreSQL", "SQLite")} <= reached
    assert all(one.values.get("lost", 0) == 0 for one in found.samples)
