"""The wheel and the source archive: what is in them, and that anybody can build them again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from release.dist import build_archives, sums
from tests.deadlines import scaled
from tests.packaging.conftest import EPOCH
from tests.packaging.installed import ROOT

CONSOLE = "detent/http/console_files/"
NOT_PUBLISHED = {".gitignore"}
pytestmark = pytest.mark.timeout(scaled(900))


def files_of(archive: Path) -> set[str]:
    """The files of a source archive, as they are named in the repository."""
    with tarfile.open(archive) as members:
        return {one.name.partition("/")[2] for one in members if one.isfile()}


def test_the_wheel_has_the_package_with_its_console_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
    wanted = set[str]()
    for folder, folders, names in os.walk(source):
        folders[:] = set(folders) - left_out(folder, folders)
        wanted |= {Path(folder, name).relative_to(source).as_posix() for name in names}
    with zipfile.ZipFile(wheel) as package:
        found = {name for name in package.namelist() if ".dist-info/" not in name}
        described = package.read(next(name for name in package.namelist() if name.endswith("/METADATA"))).decode()
    assert found == wanted
    assert {"detent/py.typed", "detent/store/postgres/schema/0001_tables.sql"} <= found
    assert "License-Expression: Apache-2.0" in described
    # Without Node the console cannot be built; then there is none in the checkout either.
    assert (f"{CONSOLE}index.html" in found) == (source / CONSOLE / "index.html").is_file()


def test_the_source_archive_has_what_the_repository_has(archives: tuple[Path, Path]) -> None:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("this is no git checkout")
    tracked = {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}
    found = files_of(archives[0])
    assert tracked - found <= NOT_PUBLISHED
    assert {name for name in found - tracked if not name.startswith(f"src/{CONSOLE}")} <= {"PKG-INFO"} | untracked()


def untracked() -> set[str]:
    """New files that are not committed yet."""
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    return set(subprocess.run(new, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())


def test_the_same_sources_give_the_same_bytes(
    archives: tuple[Path, Path], tmp_path: Path, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another place, by a user with another umask, from files with other times."""
    copy, into = tmp_path / "copy", tmp_path / "dist"
    copy.mkdir()
    into.mkdir()
    before = os.umask(0o077)
    try:
        subprocess.run(["tar", "-xzf", str(archives[0]), "--strip-components=1", "--touch"], cwd=copy, check=True)
        (copy / "PKG-INFO").unlink()
        if whole:  # build the console again, with packages from the registry
            shutil.rmtree(copy / "src" / CONSOLE)
            subprocess.run([sys.executable, "console/build.py"], cwd=copy, check=True, timeout=scaled(600))
        monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
        again = build_archives(copy, into)
    finally:
        os.umask(before)
    assert sums(list(again)) == sums(list(archives))


def test_the_time_of_the_files_is_the_one_that_is_given(archives: tuple[Path, Path]) -> None:
    with tarfile.open(archives[0]) as members:
        assert {int(one.mtime) for one in members} == {int(EPOCH)}
