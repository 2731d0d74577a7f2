"""Generated pages are up to date and complete."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Literal

import pytest

from detent import errors
from detent.declare.settings import Settings
from detent.store.invariants import load
from tests.docs.pages import PAGES, ROOT

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.DetentError)]


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


def test_no_two_errors_share_a_sqlstate() -> None:
    codes = [codes.sqlstate for codes in errors.TABLE.values()]
    assert len(codes) == len(set(codes))


def test_every_setting_is_on_the_page() -> None:
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    for one in fields(Settings):
        assert f"| `{one.name}` |" in page


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_every_invariant_is_on_the_page_and_no_other(kind: Literal["postgres", "sqlite"]) -> None:
    """R2: the page of invariants is written by hand; its names are those of the files."""
    lines = (ROOT / "docs/invariants.md").read_text(encoding="utf-8").splitlines()
    named = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert named == sorted(invariant.name for invariant in load(kind))
