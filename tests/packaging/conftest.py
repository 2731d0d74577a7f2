"""Fixtures: what `make dist` publishes, and Detent installed from it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from release.dist import build_archives
from tests.packaging.installed import ROOT, Installed, without_extras

EPOCH = "1767225600"


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source archive and the wheel of this checkout."""
    with of_the_run(tmp_path_factory, "dist") as (directory, is_new), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", EPOCH)
        if is_new:
            build_archives(ROOT, directory)
    (archive,), (wheel,) = directory.glob("*.tar.gz"), directory.glob("*.whl")
    return archive, wheel


@pytest.fixture(scope="session")
def wheel(archives: tuple[Path, Path]) -> Path:
    return archives[1]


@pytest.fixture(scope="session")
def packages(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Detent and what it requires, without any extra."""
    with of_the_run(tmp_path_factory, "packages") as (directory, is_new):
        if is_new:
            without_extras(wheel, directory)
    return directory


@pytest.fixture
def bare(packages: Path, tmp_path: Path) -> Installed:
    """Detent without any extra."""
    return Installed.from_folder(packages, tmp_path / "home")


@contextmanager
def of_the_run(factory: pytest.TempPathFactory, name: str) -> Iterator[tuple[Path, bool]]:
    """Give a folder that the workers of a run share, and whether it is new. The others wait until it is filled."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (base / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        directory = base / name
        is_new = not directory.exists()
        directory.mkdir(exist_ok=True)
        yield directory, is_new


@pytest.fixture
def registry(whole: bool) -> None:
    """Asked for by tests that install from a package registry: they take minutes."""
    if not whole:
        pytest.skip("installs packages: part of make faults")
