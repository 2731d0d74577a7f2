"""Files stay small, finished and at home anywhere; what is exported says what it promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import detent
from tests.house.surface import undocumented

ROOT = Path(__file__).parents[2]
LINES_MAX = 500
WHOLE = {"0001_tables.sql"}  # as long as the schema is
UNFINISHED = re.compile(r"\b(T[O]DO|FIX[M]E|X[X]X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}-])/(work|root|home)/")
KINDS = {".py", ".sql", ".md", ".toml", ".txt", ".sh", ".ts", ".tsx", ".css", ".html"}
PLACES = (".ci", "src", "tests", "docs", "benchmarks", "examples", "prove", "release")


def texts(root: Path) -> Iterator[tuple[Path, str]]:
    """Every text of the repository's own, in the order of its path."""
    inside = [path for place in PLACES for path in (root / place).rglob("*") if "__pycache__" not in path.parts]
    for path in sorted([*root.iterdir(), *inside]):
        if path.is_file() and (path.suffix in KINDS or path.name in ("Makefile", "run")):
            yield path.relative_to(root), path.read_text()


def complaints(root: Path) -> list[str]:
    """Every file too long, every mark of unfinished work, every path of one machine."""
    found: list[str] = []
    for path, text in texts(root):
        lines = text.splitlines()
        is_code = path.parts[0] in ("src", "tests") and path.suffix in (".py", ".sql")
        is_code = is_code and path.name not in WHOLE
        if is_code and len(lines) > LINES_MAX:
            found.append(f"{path}: {len(lines)} lines, and past {LINES_MAX} a file is two rooms")
        for number, line in enumerate(lines, start=1):
            if mark := UNFINISHED.search(line):
                found.append(f"{path}:{number}: {mark[0]}: finish it or write an issue")
            if place := MACHINE_PATH.search(line):
                found.append(f"{path}:{number}: {place[0]} is a path of one machine")
    return found


def test_files_are_small_finished_and_at_home_anywhere() -> None:
    assert complaints(ROOT) == []


def test_every_module_and_every_exported_name_has_a_docstring() -> None:
    assert undocumented(Path(detent.__file__).parent) == []


@pytest.mark.parametrize(
    ("place", "text", "complaint"),
    [
        ("src/detent/long.py", "x = 1\n" * (LINES_MAX + 1), "two rooms"),
        ("tests/long.sql", "SELECT 1;\n" * (LINES_MAX + 1), "two rooms"),
        ("src/detent/late.py", f"# {'TO' + 'DO'}: later", "finish it"),
        ("docs/late.md", f"({'FIX' + 'ME'})", "finish it"),
        ("README.md", f"see {'/ro' + 'ot/'}notes", "a path of one machine"),
        ("Makefile", f"cd {'/ho' + 'me/'}ana", "a path of one machine"),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, place: str, text: str, complaint: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (found,) = complaints(tmp_path)
    assert found.startswith(place)
    assert complaint in found


def test_a_long_page_and_an_address_are_no_fault(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("a line of https://example.org/home/page\n" * (LINES_MAX + 1))
    assert complaints(tmp_path) == []


def test_planted_silence_is_found(tmp_path: Path) -> None:
    package = tmp_path / "detent"
    package.mkdir()
    (package / "__init__.py").write_text(
        '"""Doc."""\nfrom detent import errors\nfrom detent.app import Detent, shell\n'
    )
    (package / "errors.py").write_text('"""Doc."""\nclass Refused(Exception): ...\nclass _Private: ...\n')
    (package / "app").mkdir()
    (package / "app" / "__init__.py").write_text('"""Doc."""\nfrom detent.app.facade import Detent, shell\n')
    (package / "app" / "facade.py").write_text(
        'class Detent:\n    """Doc."""\n    def get(self): ...\n    def _hidden(self): ...\n'
        'def shell():\n    """Doc."""\ndef private(): ...\n'
    )
    assert undocumented(package) == ["app/facade.py", "detent.errors.Refused", "detent.app.facade.Detent.get"]
