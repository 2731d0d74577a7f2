"""Everything that a verb can return can be imported from `detent`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import detent
from detent.app.aio_detent import AsyncDetent
from tests.surface.nouns import NOUNS, public_methods

EXPORTED = {id(getattr(detent, name)) for name in detent.__all__}
NO_NAME = {"Policies", "AsyncPolicies", "Engine"}
"""Nouns are reached from the application and need no import; the engine is for tests."""


def returned(kind: type[Any]) -> Iterator[str]:
    """Yield the classes of ours in the return types of a class that are not exported."""
    for verb, method in public_methods(kind).items():
        for name in re.findall(r"\w+", str(method.__annotations__.get("return", ""))):
            found = vars(sys.modules[method.__module__]).get(name)
            is_ours = str(getattr(found, "__module__", "")).startswith("detent.") and isinstance(found, type)
            if is_ours and id(found) not in EXPORTED and name not in NO_NAME:
                yield f"{kind.__name__}.{verb} -> {name}"


@pytest.mark.parametrize("name", NOUNS)
def test_what_a_noun_or_handle_returns(name: str) -> None:
    plain, awaited = NOUNS[name]
    assert [*returned(plain), *returned(awaited)] == []


def test_what_the_application_returns() -> None:
    nouns = {f"Async{name}" for name in NOUNS} | set(NOUNS)
    missing = [*returned(detent.Detent), *returned(AsyncDetent)]
    assert [one for one in missing if one.rpartition(" ")[2] not in nouns] == []
