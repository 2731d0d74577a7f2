"""Runs tests by name in this process, and says which failed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from prove.defects.defect import ROOT

__all__ = ["RanTests", "run_tests"]

_UNNEEDED = ("anyio", "cacheprovider", "hypothesispytest", "schemathesis", "xdist")
"""Plugins that take longer to load than the tests to run."""
_LOADED = "ignore::pytest.PytestAssertRewriteWarning"
"""The package is loaded before pytest is, so pytest cannot rewrite its assertions."""


class RanTests(NamedTuple):
    """The tests that failed, and whether all of them were run."""

    failed: frozenset[str]
    are_all: bool


class _Reports:
    """Collects what pytest reports."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.ran: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.removeprefix("tests/")
        if report.when == "call":
            self.ran.add(name)
        if report.failed:
            self.failed.add(name)


def run_tests(names: Iterable[str]) -> RanTests:
    """Run tests, each named by its path below `tests`."""
    os.chdir(ROOT)
    wanted, reports = set(names), _Reports()
    without = [part for name in _UNNEEDED for part in ("-p", f"no:{name}")]
    nodes = [f"tests/{name}" for name in sorted(wanted)]
    code = pytest.main(["-q", "--tb=line", "-W", _LOADED, *without, *nodes], plugins=[reports])
    ended = code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    return RanTests(frozenset(reports.failed), ended and reports.ran == wanted)
