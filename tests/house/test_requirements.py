"""What is said to be built is cited by a test, and what tests cite is there to be read."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "requirements.md"
ROW = re.compile(r"\| (?P<id>[A-Z]\d+) \| (?P<text>.+) \| (?P<state>[a-z]+) \|")
HEADING = re.compile(r"^## ([A-Z])\. ", re.MULTILINE)
STATES = ("built", "partly", "planned")


def requirements(page: str) -> dict[str, str]:
    """The state of each requirement on the page, in its order."""
    rows = [row for line in page.splitlines() if (row := ROW.fullmatch(line))]
    found = {row["id"]: row["state"] for row in rows}
    assert len(found) == len(rows), "an id stands twice on the page"
    return found


def cited(source: str, ids: re.Pattern[str]) -> set[str]:
    """The ids that the tests of a module cite: in a test's own docstring or in a comment inside it."""
    lines = {token.start[0]: token.string for token in _comments(source)}
    found: set[str] = set()
    for test in ast.walk(ast.parse(source)):
        if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) and test.name.startswith("test_"):
            assert test.end_lineno is not None
            comments = [lines.get(line, "") for line in range(test.lineno, test.end_lineno + 1)]
            found.update(ids.findall("\n".join([ast.get_docstring(test) or "", *comments])))
    return found


def _comments(source: str) -> Iterator[tokenize.TokenInfo]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token


@functools.cache
def citations() -> dict[str, list[str]]:
    """Return every id cited by a test, and where. Reading all tests takes seconds: only a test of this file does it,
    not every process that collects tests."""
    root = ROOT / "tests"
    ids = re.compile(rf"\b[{LETTERS}]\d{{1,2}}\b")
    where: dict[str, list[str]] = {}
    for path in sorted(root.rglob("test_*.py")):
        for name in cited(path.read_text(), ids):
            where.setdefault(name, []).append(str(path.relative_to(root)))
    return where


PAGE_TEXT = PAGE.read_text()
REQUIREMENTS = requirements(PAGE_TEXT)
LETTERS = "".join(HEADING.findall(PAGE_TEXT))


def test_the_page_counts_without_gaps_and_knows_three_states() -> None:
    numbers: dict[str, list[int]] = {}
    for name in REQUIREMENTS:
        numbers.setdefault(name[0], []).append(int(name[1:]))
    assert "".join(numbers) == LETTERS
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())
    assert set(REQUIREMENTS.values()) <= set(STATES)


@pytest.mark.parametrize("name", [name for name, state in REQUIREMENTS.items() if state != "planned"])
def test_what_is_built_is_cited_by_a_test(name: str) -> None:
    assert name in citations()


def test_every_cited_requirement_is_on_the_page() -> None:
    assert {name: where for name, where in citations().items() if name not in REQUIREMENTS} == {}


def test_citations_are_found_in_tests_and_nowhere_else() -> None:
    source = (
        '"""Z9."""\n# Z8\ndef test_a():\n    """Z1: so."""\n    x = "Z7"  # as Z2 says\ndef helper():\n    """Z6."""\n'
    )
    assert cited(source, re.compile(r"\bZ\d\b")) == {"Z1", "Z2"}
