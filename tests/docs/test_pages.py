"""Generated pages are up to date and complete."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Literal

import pytest

import detent
from detent import errors
from detent.declare.settings import Settings
from detent.store.invariants import load
from tests.docs.error_advice import ADVICE
from tests.docs.pages import ENVIRONMENT, PAGES, ROOT
from tests.docs.python_page import GROUPS, TWINS, members, nouns

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.DetentError)]


FOREIGN = {"PATH", "TERM"}
"""Variables of the system, which mean what they always mean."""


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_its_source_says(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "python -m tests.docs.pages"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_is_on_the_page_in_the_table_and_in_the_tree(kind: type[errors.DetentError]) -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    assert f"| `{kind.__name__}` |" in page
    assert kind in errors.TABLE
    assert kind.__name__ in errors.__all__
    assert any(line.strip("│├└─ ").split()[0] == kind.__name__ for line in page.splitlines() if line.strip("│├└─ "))
    assert kind.__doc__


def test_advice_is_about_errors_that_exist() -> None:
    assert set(ADVICE) <= {kind.__name__ for kind in CLASSES}


def test_no_two_errors_share_a_sqlstate() -> None:
    codes = [codes.sqlstate for codes in errors.TABLE.values()]
    assert len(codes) == len(set(codes))


def test_every_setting_is_on_the_page() -> None:
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    for one in fields(Settings):
        assert f"| `{one.name}` |" in page


def test_every_environment_variable_is_on_the_page() -> None:
    """Each name that the code reads, or sets for a command, is a setting or has a line of its own."""
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"environ(?:\.get|\.pop)?[\[(]\s*\"(\w+)\"", code)) | set(
        re.findall(r"\"(DETENT_[A-Z_]*[A-Z])\"", code)
    )
    of_settings = {f"DETENT_{one.name.upper()}" for one in fields(Settings)}
    assert read - of_settings - set(ENVIRONMENT) - FOREIGN == set()
    assert [name for name in ENVIRONMENT if f'"{name}"' not in code] == []


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_every_invariant_is_on_the_page_and_no_other(kind: Literal["postgres", "sqlite"]) -> None:
    """R2: the page of invariants is written by hand; its names are those of the files."""
    lines = (ROOT / "docs/invariants.md").read_text(encoding="utf-8").splitlines()
    named = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert named == sorted(invariant.name for invariant in load(kind))


def test_every_public_name_is_on_the_python_page() -> None:
    """Every name of `detent`, every noun and every verb has a heading; attributes and fields have a row."""
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    headings = {line.lstrip("# ") for line in page.splitlines() if line.startswith("#")}
    listed = {name for names in GROUPS.values() for name in names}
    assert {"Detent", "errors", *TWINS} | listed == set(detent.__all__)
    assert listed | {"Detent", "errors"} <= headings
    assert all(f"| `{name}` |" in page for name in TWINS)
    classes = {path: (path, noun) for path, noun in nouns().items()} | {"app": ("Detent", detent.Detent)}
    for path, (heading, noun) in classes.items():
        assert heading in headings
        for name, member in members(noun).items():
            has_row = isinstance(member, property) and (f"| `{name}` |" in page or f"{path}.{name}" in headings)
            assert has_row or f"{path}.{name}" in headings, f"{path}.{name}"
    verbs = {heading.rpartition(".")[2] for heading in headings}
    for kind in (getattr(detent, name) for name in listed):
        for name, member in members(kind).items() if isinstance(kind, type) else ():
            assert f"| `{name}` |" in page if isinstance(member, property) else name in verbs, f"{kind}.{name}"


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)):
        if "://" not in link:
            file, _, anchor = link.partition("#")
            target = (page.parent / file) if file else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in sorted((ROOT / "docs").rglob("*.md"))]
    assert [page for page in pages if f"({page}" not in index] == ["README.md"]
