"""The tutorial is followed word for word: its program, and its commands in their order."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.deadlines import scaled, until
from tests.docs.test_blocks import ROOT

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python run|sh)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = {
    "detent jobs list": "succeeded",
    "detent dead report": "FileNotFoundError",
    "detent jobs list --key invoice-1": "succeeded",
    "detent record search": "the file is there now",
    "detent jobs list --task shop.add_product": "succeeded",
    "detent runs get": "2 applied",
    "detent workflows waits": "approval",
    "detent jobs list --key order-7": "succeeded",
    "detent jobs list --key order-8": "cancelled",
    "detent verify": "healthy",
}
"""What a command shows in the end: the longest beginning counts. The page says so, or a reader would expect it."""
pytestmark = pytest.mark.timeout(scaled(240) + 60)


@contextmanager
def dev(directory: Path) -> Iterator[None]:
    """`detent dev shop:app`, as in the first terminal, on any free port."""
    with (directory / "dev.log").open("w", encoding="utf-8") as log:
        command = [sys.executable, "-m", "detent.cli", "dev", "shop:app", "--port", "0"]
        process = subprocess.Popen(command, cwd=directory, env=environment(), stdout=log, stderr=log)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(scaled(60))


def environment() -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
    return clean | {"PATH": f"{Path(sys.executable).parent}:{clean['PATH']}", "DETENT_APP": "shop:app"}


def typed(directory: Path, line: str, text: str = "") -> str:
    """Type one command; what it printed, or nothing if that lacks the text."""
    done = subprocess.run(
        ["bash", "-c", line], cwd=directory, env=environment(), capture_output=True, text=True, timeout=scaled(60)
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout if text in done.stdout else ""


def shown(line: str) -> str | None:
    """What the command shows in the end, if it only reads."""
    return SHOWN.get(max((command for command in SHOWN if line.startswith(command)), key=len, default=""))


def test_a_reader_who_types_everything_gets_what_the_page_says(tmp_path: Path) -> None:
    program = "\n\n".join(code for kind, code in BLOCKS if kind == "python run")
    (tmp_path / "shop.py").write_text(program, encoding="utf-8")
    printed, run = dict[str, str](), ""
    with dev(tmp_path):
        for line in "".join(code for kind, code in BLOCKS if kind == "sh").splitlines():
            if line.startswith((". ~/", "cd ~/", "export ")):
                continue  # where this test is already
            line = line.replace(" 1000", f" {run}")
            if text := shown(line):
                printed[line] = until(partial(typed, tmp_path, line, text), f"{line} shows {text}", pause=0.5)
            else:
                printed[line] = typed(tmp_path, line)
            if line.startswith("detent runs preview"):
                run = re.findall(r"\d+", printed[line])[0]
    assert "rolled back" in printed[f"detent runs changes {run}"].replace("_", " ")
    assert "released reservation-8" in (tmp_path / "dev.log").read_text(encoding="utf-8")
