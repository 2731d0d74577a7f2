"""What the README tells a new user to do is done here, word for word."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import scaled
from tests.docs.test_blocks import ROOT, blocks

README = (ROOT / "README.md").read_text(encoding="utf-8")
SECONDS_MAX = scaled(200)
pytestmark = pytest.mark.timeout(SECONDS_MAX + 60)


def shell_block(first_line: str) -> str:
    """The block of shell commands that begins with that line."""
    found = [block for block in re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S) if block.startswith(first_line)]
    assert len(found) == 1, found
    return str(found[0])


def test_the_first_command_is_make_demo() -> None:
    """Its own test is in tests/demo."""
    first, *_ = re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S)
    assert first == "make demo\n"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\ndemo: $(RUNS)" in makefile


def test_ci_runs_the_test_command_of_the_page() -> None:
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert any(line.split("</dev/null")[0].strip() == "make test" for line in commands)
    assert "`make test`" in README
    assert "\nmake test " in README


def test_the_example_on_the_page_is_the_one_in_the_repository() -> None:
    example = (ROOT / "examples" / "first" / "shop.py").read_text(encoding="utf-8")
    assert example.partition('"""\n\n')[2] == blocks("README.md", "run")


def run(directory: Path, script: str, **environment: str) -> str:
    """Run commands in a shell in a copy of the repository; what they printed."""
    (directory / ".venv").symlink_to(sys.prefix)
    # The database of a reader who followed the page already stays behind.
    left = shutil.ignore_patterns("*.db", "*.db-*")
    shutil.copytree(ROOT / "examples" / "first", directory / "examples" / "first", ignore=left)
    shutil.copy(ROOT / "pyproject.toml", directory)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
    process = subprocess.Popen(
        ["bash", "-e", "-c", script],
        cwd=directory,
        env=clean | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0, out + err
    return out


def test_the_test_on_the_page_is_the_one_in_the_repository_and_runs_where_the_page_says(tmp_path: Path) -> None:
    """pytest was not there, took the repository's own settings, and did not find the module."""
    example = (ROOT / "examples" / "first" / "test_shop.py").read_text(encoding="utf-8")
    assert example.partition('"""\n\n')[2] == blocks("README.md", "test")
    enter = "".join(shell_block(". .venv/bin/activate").splitlines(keepends=True)[:3])
    # As in the environment of `make demo`, which has none of the plugins that the repository's own tests use.
    out = run(tmp_path, enter + shell_block("pip install pytest"), PYTEST_ADDOPTS="-p no:timeout -p no:xdist")
    assert "3 passed" in out


def test_the_first_commands_do_what_the_page_says(tmp_path: Path) -> None:
    """In a copy of the repository, in a shell, one after the other."""
    out = run(tmp_path, shell_block(". .venv/bin/activate"))
    first, *listed, last = out.splitlines()
    assert first.startswith("it is ready in queue 'mail' and waits for a worker")
    for task in ("shop.welcome", "expense"):
        assert any(task in line.split() and "succeeded" in line.split() for line in listed), out
    assert last == "healthy: no invariant is violated"
