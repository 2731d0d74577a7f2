"""Detent as its users have it: installed from a wheel, away from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.cli.shell import Ended
from tests.deadlines import scaled

ROOT = Path(__file__).parents[2]
SECONDS_MAX = scaled(60)
APP = """
from detent import Context, Detent

app = Detent()

@app.task
def add(ctx: Context, a: int, b: int) -> int:
    return a + b
"""


@dataclass(frozen=True)
class Installed:
    """An interpreter that has Detent from a wheel, and a directory to work in."""

    python: tuple[str, ...]
    directory: Path
    environment: dict[str, str]

    @staticmethod
    def from_folder(packages: Path, home: Path) -> Installed:
        """Return an interpreter that knows only the standard library (`-S`) and a folder of packages."""
        return Installed.at(home, (sys.executable, "-S"), PYTHONPATH=str(packages))

    @staticmethod
    def at(home: Path, python: tuple[str, ...], **environment: str) -> Installed:
        """Return an interpreter, with an application in a home of its own."""
        home.mkdir()
        (home / "shop.py").write_text(APP)
        return Installed(python, home, clean_environment(home) | environment)

    def run(self, *arguments: str, **environment: str) -> Ended:
        """Run the interpreter to its end."""
        done = subprocess.run(
            [*self.python, *arguments],
            cwd=self.directory,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def detent(self, *arguments: str, **environment: str) -> Ended:
        return self.run("-m", "detent.cli", *arguments, **environment)


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of a user who has set nothing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DETENT_", "PYTHON", "PYTEST"))}
    return kept | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}


def without_extras(wheel: Path, packages: Path) -> None:
    """Install the wheel and what it requires, and no more, into a folder, without a network: the required packages are
    those of the tests' own environment."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(packages)]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
    for name in _required("detent"):
        _copy(name, packages)


def in_environment(wheel: Path, directory: Path, *, extra: str = "", python: str = sys.executable) -> Installed:
    """Install the wheel with pip into an empty virtual environment, as a user does."""
    subprocess.run([python, "-m", "venv", str(directory / "venv")], check=True)
    found = Installed.at(directory / "home", (str(directory / "venv/bin/python"),))
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = [*found.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted]
    subprocess.run(pip, check=True, timeout=scaled(300))  # with the settings of pip in the user's own home
    return found


def _required(name: str) -> set[str]:
    """Return the packages that a package requires without extras, and those that they require."""
    found: set[str] = set()
    left = [name]
    while left:
        for line in distribution(left.pop()).requires or ():
            wanted = Requirement(line)
            if wanted.name not in found and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
                found.add(wanted.name)
                left.append(wanted.name)
    return found


def _copy(name: str, into: Path) -> None:
    whole = distribution(name)
    for top in {file.parts[0] for file in whole.files or () if file.parts[0] != ".."}:
        source = Path(str(whole.locate_file(top)))
        if source.is_dir():
            shutil.copytree(source, into / top, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy(source, into / top)
