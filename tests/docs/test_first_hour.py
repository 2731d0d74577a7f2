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


def test_the_example_on_the_page_is_the_one_in_the_repository() -> None:
    example = (ROOT / "examples" / "first" / "shop.py").read_text(encoding="utf-8")
    assert example.partition('"""\n\n')[2] == blocks("README.md", "run")


def test_the_first_commands_do_what_the_page_says(tmp_path: Path) -> None:
    """In a copy of the repository, in a shell, one after the other."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    shutil.copytree(ROOT / "examples" / "first", tmp_path / "examples" / "first")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
    process = subprocess.Popen(
        ["bash", "-e", "-c", shell_block(". .venv/bin/activate")],
        cwd=tmp_path,
        env=clean,
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
    first, *listed, last = out.splitlines()
    assert first.startswith("it is ready in queue 'mail' and waits for a worker")
    assert any("shop.welcome" in line.split() and "succeeded" in line.split() for line in listed), out
    assert last == "healthy: no invariant is violated"
