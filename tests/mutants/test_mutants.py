"""Take out any one guard, and at least one test fails: the tests are tested here.

Each mutant is the package with one guard taken out, in which the tests named for it are run by a pytest of its own.
They must run and fail; with nothing taken out they must pass. The mutants are in `prove/defects`.

`make test` takes one guard out on each database; `make faults` and the figure P7 take out every one in every way.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from detent.testing.postgres import URL_VARIABLE, Cluster
from prove.defects import planted
from prove.defects.mutant import Mutant
from prove.defects.store_guards import GUARDS, MUTANTS
from prove.defects.trial import try_defect
from prove.defects.workflow_guards import WORKFLOW_GUARDS, WORKFLOW_MUTANTS
from tests.deadlines import scaled

SECONDS_MAX = scaled(300)
pytestmark = pytest.mark.timeout(SECONDS_MAX + 60)
ALL = (*MUTANTS, *WORKFLOW_MUTANTS)
SLICE = {mutant.database: mutant.name for mutant in reversed(ALL)}.values()
"""The first mutant of each database."""


@pytest.fixture(autouse=True)
def server(postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of the mutants use the server of this run."""
    monkeypatch.setenv(URL_VARIABLE, postgres_cluster.url)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_a_guard_that_is_taken_out_is_missed(mutant: Mutant, whole: bool) -> None:
    """J5, C1, L4, F29: the guards are there, and each is needed."""
    if not whole and mutant.name not in SLICE:
        pytest.skip("part of make faults")
    trial = try_defect(mutant.defect, seed=1)
    assert trial.verdict == "found", trial.said


def test_with_all_guards_in_place_the_same_tests_pass(whole: bool) -> None:
    """And it is the copy that they test, not the package that is installed beside it."""
    if not whole:
        pytest.skip("part of make faults: make test runs these tests themselves")
    nodes = sorted({f"tests/{test}" for mutant in ALL for test in mutant.tests})
    root = Path(__file__).parents[2]
    with planted(()) as environment:
        told = subprocess.run(
            [sys.executable, "-c", "import detent; print(detent.__file__)"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.startswith(environment["PYTHONPATH"].partition(":")[0])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *nodes]
        ran = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_guard_is_on_the_list_for_every_database_that_has_it() -> None:
    """Only SQLite has a write lock: PostgreSQL lets writers in side by side."""
    tried = {(mutant.guard, mutant.database) for mutant in MUTANTS}
    needed = {(guard, database) for guard in GUARDS for database in ("sqlite", "postgres")}
    assert tried == needed - {("write lock", "postgres")}
    assert {mutant.guard for mutant in WORKFLOW_MUTANTS} == set(WORKFLOW_GUARDS)
    assert all(mutant.tests for mutant in ALL)
