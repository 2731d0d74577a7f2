"""Run the tests, and run a failed test that starts processes once more, alone.

`python -m tests.repeat ARGUMENTS` calls pytest with the arguments. Only tests below `MAY_BE_REPEATED` are repeated:
they use real processes, signals and leases, and a machine that stands still for a while may break them. If such a test
passes when it is repeated, the run is green, and the test is listed as flaky at the end and in `build/flaky.txt`: each
of them is a defect to be mended. A test that fails twice fails the run, and so does a failure anywhere else.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["MAY_BE_REPEATED", "Failures", "main", "repeatable"]

MAY_BE_REPEATED = ("tests/faults/", "tests/processes/", "tests/worker/", "tests/demo/", "tests/examples/")
_MANY = 20
"""With more failures than this, something is broken, and repeating would only take time."""
_BUILD = Path("build")
_TESTS_FAILED = 1


class Failures:
    """A pytest plugin that writes the names of failed tests to a file, one per line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a test that failed in any phase."""
        if report.failed and report.nodeid not in self._failed:
            self._failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember a file that could not be collected."""
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the names."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("".join(f"{name}\n" for name in self._failed))


def repeatable(code: int, failed: list[str]) -> bool:
    """Return whether a run that ended with this exit code, and these failures, may be saved by repeating them."""
    if code != _TESTS_FAILED or not 0 < len(failed) <= _MANY:
        return False
    return all("::" in name and name.startswith(MAY_BE_REPEATED) for name in failed)


def main(arguments: list[str]) -> int:
    """Run pytest, repeat what may be repeated, and return the exit code."""
    failures, flaky = _BUILD / "failed.txt", _BUILD / "flaky.txt"
    flaky.unlink(missing_ok=True)
    code, failed = _run(arguments, failures)
    if not repeatable(code, failed):
        return code
    _say(f"{len(failed)} failed that may be repeated; each is run once more, alone")
    again = [_run(["-p", "no:xdist", name], _BUILD / "failed-again.txt")[0] for name in failed]
    passed = [name for name, code in zip(failed, again, strict=True) if code == 0]
    flaky.write_text("".join(f"{name}\n" for name in passed))
    _say(f"flaky ({len(passed)}): failed once, passed alone; see {flaky}", *passed)
    return max(again)


def _run(arguments: list[str], failures: Path) -> tuple[int, list[str]]:
    failures.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, "-m", "pytest", "--failed-to", str(failures), *arguments])
    return done.returncode, failures.read_text().splitlines() if failures.exists() else []


def _say(title: str, *lines: str) -> None:
    print("", f"=== {title} ===", *(f"  {line}" for line in lines), sep="\n", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
