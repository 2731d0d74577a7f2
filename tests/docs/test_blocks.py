"""Code in the README and the docs runs: what a reader copies works.

Blocks marked `python run` of one page are one program, in order; it runs as `shop.py` in an empty directory, on SQLite
as it stands and on PostgreSQL with the address replaced. Blocks marked `python test` are tests of that program.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import scaled

ROOT = Path(__file__).parents[2]
ADDRESS = "sqlite:///shop.db"
BLOCK = re.compile(r"^```python (?P<kind>run|test)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(path.read_text(encoding="utf-8"))
}


def blocks(page: str, kind: str) -> str:
    text = PAGES[page].read_text(encoding="utf-8")
    return "\n\n".join(found["code"] for found in BLOCK.finditer(text) if found["kind"] == kind)


def python(directory: Path, *arguments: str) -> str:
    """Run it as a reader would; what it printed."""
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=scaled(100), check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


ON_SQLITE = {"docs/tutorial.md": "test_tutorial.py"}
"""Pages that are about a SQLite file, and the test that runs their program."""


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ON_SQLITE])
def test_the_program_of_a_page_runs(page: str, tmp_path: Path, database_url: str) -> None:
    code = blocks(page, "run")
    assert ADDRESS in code
    is_sqlite = database_url.startswith("sqlite:")
    (tmp_path / "shop.py").write_text(code if is_sqlite else code.replace(ADDRESS, database_url), encoding="utf-8")
    python(tmp_path, "shop.py")
    assert (tmp_path / "shop.db").exists() == is_sqlite


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "test")])
def test_the_tests_of_a_page_pass(page: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(blocks(page, "run"), encoding="utf-8")
    (tmp_path / "test_shop.py").write_text(blocks(page, "test"), encoding="utf-8")
    assert re.search(r"\d+ passed", python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"))
    assert not (tmp_path / "shop.db").exists()


def test_there_is_something_to_run() -> None:
    assert {"README.md", "docs/guide.md"} <= set(PAGES)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.stem
)
def test_a_block_from_an_example_is_in_it(page: Path) -> None:
    """A block marked `python in PATH` is a part of that file, which the tests of the example run."""
    for path, code in re.findall(r"^```python in (\S+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        assert path.startswith("examples/")
        assert code in (ROOT / path).read_text("utf-8"), (path, code)


def test_every_python_block_is_run() -> None:
    """A block that is not run is a promise nobody keeps; what cannot run is text."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        fences = re.findall(r"^```(python.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert {one.partition(" in ")[0] for one in fences} <= {"python run", "python test", "python"}, page
        assert "python" not in fences, page
