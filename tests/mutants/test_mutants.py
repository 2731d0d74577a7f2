"""Take out any one guard, and at least one test fails: the tests are tested here.

Each mutant is a copy of the package and its tests with one guard taken out, in which the tests named for it are run by
a pytest of its own. They must run and fail; in a copy with nothing taken out they must pass.

`make test` takes each guard out in one way on each database; `make faults` in every way.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from detent.testing.postgres import URL_VARIABLE, Cluster
from tests.deadlines import scaled
from tests.mutants.mutants import GUARDS, MUTANTS, Edit, Mutant
from tests.mutants.workflow_mutants import WORKFLOW_GUARDS, WORKFLOW_MUTANTS

ROOT = Path(__file__).parents[2]
FAILED = re.compile(r"^FAILED tests/(\S+?)(?: - .*)?$", re.MULTILINE)
SECONDS_MAX = scaled(300)
pytestmark = pytest.mark.timeout(SECONDS_MAX + 60)
UNNEEDED = ("anyio", "cacheprovider", "hypothesispytest", "schemathesis", "xdist")
"""Plugins that take longer to load than the tests to run."""
TESTS_FAILED = 1
"""The exit code of a pytest whose tests ran and did not all pass; everything else wrong has another."""
ALL = (*MUTANTS, *WORKFLOW_MUTANTS)
SLICE = {(mutant.guard, mutant.database): mutant.name for mutant in reversed(ALL)}.values()
"""The first way of each guard on each database."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and its tests, to be changed. Compiled files come along, and serve what is unchanged."""
    leave = shutil.ignore_patterns("*.pyc.*", "*.tmp")
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, tmp_path / "copy" / part, ignore=leave)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "copy")
    return tmp_path / "copy"


def edit(copy: Path, change: Edit) -> None:
    """Make a change. Fails if its text is not there as often as it should be."""
    path = copy / "src" / "detent" / "store" / change.file
    path.write_text(edited(path, change))


def edited(path: Path, change: Edit) -> str:
    """Return the text of the file with the change made."""
    text = path.read_text()
    assert text.count(change.old) == change.times, f"{change.file}: the guard has moved: {change.old!r}"
    return text.replace(change.old, change.new)


def run(copy: Path, cluster: Cluster, tests: list[str]) -> tuple[int, set[str], str]:
    """Run these tests on the copy: the exit code, those that failed, and all that was said."""
    nodes = [f"tests/{test}" for test in tests]
    without = [part for name in UNNEEDED for part in ("-p", f"no:{name}")]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=short", *without, *nodes],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1", URL_VARIABLE: cluster.url},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return ran.returncode, set(FAILED.findall(ran.stdout)), ran.stdout + ran.stderr


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_a_guard_that_is_taken_out_is_missed(
    mutant: Mutant, request: pytest.FixtureRequest, whole: bool, postgres_cluster: Cluster
) -> None:
    """J5, C1, L4, F29: the guards are there, and each is needed."""
    if not whole and mutant.name not in SLICE:
        pytest.skip("part of make faults")
    copy: Path = request.getfixturevalue("copy")
    for change in mutant.edits:
        edit(copy, change)
    code, failed, said = run(copy, postgres_cluster, list(mutant.tests))
    assert (code, failed) == (TESTS_FAILED, set(mutant.tests)), said


def test_with_all_guards_in_place_the_same_tests_pass(copy: Path, postgres_cluster: Cluster) -> None:
    tests = sorted({test for mutant in ALL for test in mutant.tests})
    code, failed, said = run(copy, postgres_cluster, tests)
    assert (code, failed) == (0, set()), said


def test_the_copy_is_what_is_tested(copy: Path) -> None:
    """Not the package that is installed beside it."""
    where = subprocess.run(
        [sys.executable, "-c", "import detent; print(detent.__file__)"],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(copy)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_every_guard_is_where_its_mutant_takes_it_out(mutant: Mutant) -> None:
    """An ordinary run takes out a few guards only, so a mutant that no longer matches the code went unnoticed."""
    for change in mutant.edits:
        path = ROOT / "src" / "detent" / "store" / change.file
        assert edited(path, change) != path.read_text()


def test_every_guard_is_on_the_list_for_every_database_that_has_it() -> None:
    """Only SQLite has a write lock: PostgreSQL lets writers in side by side."""
    tried = {(mutant.guard, mutant.database) for mutant in MUTANTS}
    needed = {(guard, database) for guard in GUARDS for database in ("sqlite", "postgres")}
    assert tried == needed - {("write lock", "postgres")}
    assert {mutant.guard for mutant in WORKFLOW_MUTANTS} == set(WORKFLOW_GUARDS)
    assert all(mutant.tests for mutant in ALL)
    assert len({mutant.name for mutant in ALL}) == len(ALL)
