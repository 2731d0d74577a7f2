"""The net below flaky tests: what is repeated, what never is, and what a run with a flaky test says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import deadlines
from tests.deadlines import scaled, until
from tests.repeat import repeatable

ROOT = Path(__file__).parents[2]
FAILS_ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path("seen")
    if not seen.exists():
        seen.touch()
        raise AssertionError("the machine stood still")
"""
FAILS_ALWAYS = "def test_fails():\n    assert False\n"
PASSES = "def test_passes():\n    pass\n"
CONFTEST = """
from pathlib import Path
from tests import repeat

def pytest_addoption(parser):
    parser.addoption("--failed-to")

def pytest_configure(config):
    config.pluginmanager.register(repeat.Failures(Path(config.getoption("--failed-to"))))
"""


def run(directory: Path, **files: str) -> tuple[int, str, list[str]]:
    """Run a project of these tests as `make test` does: exit code, output, tests listed as flaky."""
    for name, text in {"conftest": CONFTEST, **files}.items():
        path = directory / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (directory / "pytest.ini").write_text("[pytest]\n")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.repeat import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "-p", "no:xdist", "-p", "no:cacheprovider", "--rootdir", str(directory)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, env=environment, timeout=scaled(60), check=False
    )
    flaky = directory / "build" / "flaky.txt"
    return done.returncode, done.stdout + done.stderr, flaky.read_text().splitlines() if flaky.exists() else []


def test_a_test_that_passes_when_repeated_is_listed_as_flaky(tmp_path: Path) -> None:
    code, said, flaky = run(tmp_path, tests__worker__test_a=FAILS_ONCE, tests__test_b=PASSES)
    assert code == 0, said
    assert flaky == ["tests/worker/test_a.py::test_fails_once"]
    assert "=== flaky (1)" in said


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, said, flaky = run(tmp_path, tests__worker__test_a=FAILS_ALWAYS)
    assert (code, flaky) == (1, []), said


def test_no_other_test_is_repeated(tmp_path: Path) -> None:
    code, said, flaky = run(tmp_path, tests__store__test_a=FAILS_ONCE)
    assert (code, flaky) == (1, []), said


@pytest.mark.parametrize(
    ("code", "failed", "may"),
    [
        (1, ["tests/faults/test_a.py::test_b"], True),
        (1, ["tests/faults/test_a.py::test_b", "tests/demo/test_c.py::test_d[x]"], True),
        (1, ["tests/faults/test_a.py::test_b", "tests/store/test_c.py::test_d"], False),
        (1, ["tests/faults/test_a.py"], False),
        (1, [f"tests/faults/test_a.py::test_{n}" for n in range(21)], False),
        (1, [], False),
        (0, [], False),
        (2, ["tests/faults/test_a.py::test_b"], False),
    ],
    ids=["one", "two", "another part", "not collected", "too many", "none named", "green", "interrupted"],
)
def test_what_may_be_repeated(code: int, failed: list[str], may: bool) -> None:
    assert repeatable(code, failed) is may


def test_deadlines_grow_with_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "factor", lambda: 4.0)
    assert scaled(2.5) == 10.0
    assert 1.0 <= deadlines.measure() <= 10.0


def test_a_condition_that_is_never_met_says_what_it_saw() -> None:
    with pytest.raises(AssertionError, match="the end of the job was not met within 0 s; last seen: 0"):
        until(lambda: 0, "the end of the job", seconds=0)
