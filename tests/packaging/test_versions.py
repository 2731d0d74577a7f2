"""The versions of Python that the package names are those it works on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tests.deadlines import scaled
from tests.packaging.installed import ROOT, in_environment

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LISTED = sorted(int(minor) for minor in re.findall(r":: Python :: 3\.(\d+)", "\n".join(PROJECT["classifiers"])))
OLDEST = f"3.{LISTED[0]}.0"
pytestmark = pytest.mark.timeout(scaled(600))


def test_the_oldest_version_that_is_listed_is_the_oldest_that_pip_accepts() -> None:
    assert OLDEST in SpecifierSet(PROJECT["requires-python"])
    assert f"3.{LISTED[0] - 1}.99" not in SpecifierSet(PROJECT["requires-python"])
    assert list(range(LISTED[0], LISTED[-1] + 1)) == LISTED


def test_every_pinned_package_can_be_installed_on_the_oldest_python() -> None:
    """`make test` failed on Debian 12, which has Python 3.11.2: a pinned package needed 3.11.5."""
    pinned = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE))
    checked = 0
    for one in distributions():
        name, needs = one.metadata["Name"], one.metadata.json.get("requires_python")
        if pinned.get(name) == one.version and isinstance(needs, str):
            checked += 1
            assert OLDEST in SpecifierSet(needs), f"{name} {one.version} needs Python {needs}"
    assert checked > 40


def interpreter(minor: int) -> str | None:
    """Return a Python of this version: on the path, or of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = sorted(str(found) for found in versions.glob(f"3.{minor}.*/bin/python3"))
    for name in (*installed, shutil.which(f"python3.{minor}")):
        if name and subprocess.run([name, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return name
    return None


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("minor", LISTED)
def test_the_wheel_works_on_every_version_that_is_listed(minor: int, wheel: Path, tmp_path: Path) -> None:
    python = interpreter(minor)
    if python is None:
        pytest.skip(f"there is no Python 3.{minor} on this machine")
    found = in_environment(wheel, tmp_path, python=python)
    url = "sqlite:///shop.db"
    assert found.detent("migrate", "--database", url).code == 0
    assert found.detent("enqueue", "shop.add", '{"a": 1, "b": 2}', "--app", "shop:app", "--database", url).code == 0
    assert found.detent("worker", "shop:app", "--drain", "--database", url).code == 0
    assert "succeeded" in found.detent("jobs", "list", "--database", url).out
    assert found.detent("verify", "--database", url).code == 0
