"""Which tests a run takes: `make quick`, `make test` and `make faults`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.selection import ONE_DATABASE, in_quick_run, other_database, without_processes

ROOT = Path(__file__).parents[2]


def item(name: str, *fixtures: str) -> Any:
    """A test as pytest collects it."""
    return SimpleNamespace(nodeid=name, fixturenames=fixtures, path=ROOT / name.partition("::")[0])


def hashable(*names: str) -> list[Any]:
    """Tests of these names, which a set can hold."""
    return [type("Item", (), {"nodeid": name})() for name in names]


def test_an_ordinary_run_takes_tests_above_the_store_on_one_database() -> None:
    """Half of them on either, and the same half in every run."""
    names = [f"tests/app/test_a.py::test_{n}[{kind}-{n}]" for n in range(100) for kind in ("sqlite", "postgres")]
    others = {one.nodeid for one in other_database(hashable(*names))}
    kept = [name for name in names if name not in others]
    assert [name.partition("[")[0] for name in kept] == [f"tests/app/test_a.py::test_{n}" for n in range(100)]
    assert 30 < sum("postgres" in name for name in kept) < 70
    assert {one.nodeid for one in other_database(hashable(*names))} == others


@pytest.mark.parametrize(
    "names",
    [
        ("tests/contract/jobs/test_a.py::test_b[sqlite]", "tests/contract/jobs/test_a.py::test_b[postgres]"),
        ("tests/app/test_a.py::test_b[sqlite]",),
        ("tests/app/test_a.py::test_b[sqlite-postgres]", "tests/app/test_a.py::test_b[postgres-sqlite]"),
        ("tests/app/test_a.py::test_b", "tests/app/test_a.py::test_c"),
    ],
    ids=["of the store", "on one database already", "on both at once", "on none"],
)
def test_all_others_are_kept(names: tuple[str, ...]) -> None:
    assert other_database(hashable(*names)) == set()


@pytest.mark.parametrize(
    ("name", "fixtures", "taken"),
    [
        ("tests/contract/jobs/test_a.py::test_b[sqlite]", ("store", "store_url"), True),
        ("tests/contract/jobs/test_a.py::test_b[postgres]", ("store", "store_url"), False),
        ("tests/store/postgres/test_a.py::test_b", ("postgres_url", "postgres_cluster"), False),
        ("tests/model/test_a.py::test_b", (), True),
        ("tests/processes/test_a.py::test_b[sqlite]", ("bench",), False),
    ],
    ids=["sqlite", "postgres", "a fixture of postgres", "no database", "a folder of processes"],
)
def test_a_quick_run_takes_sqlite_only_and_no_folder_of_processes(
    name: str, fixtures: tuple[str, ...], taken: bool
) -> None:
    assert in_quick_run(item(name, *fixtures)) is taken


def test_a_quick_run_skips_a_test_that_starts_a_process() -> None:
    with without_processes(), pytest.raises(pytest.skip.Exception, match="starts a process"):
        subprocess.run(["true"], check=True)


def test_make_faults_takes_both_databases_of_every_folder_that_make_test_takes_on_one() -> None:
    makefile = (ROOT / "Makefile").read_text()
    listed = makefile.partition("WHOLE := ")[2].replace("\\\n", " ").partition("\n")[0].split()
    assert set(ONE_DATABASE) <= set(listed)
