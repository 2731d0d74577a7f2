"""The catalogue and its tests: a verb is added in one way, and none is left untested."""

from __future__ import annotations

import re
from pathlib import Path

from detent.errors import DetentError
from detent.store.contract import CATALOGUE, Store, Verbs

HERE = Path(__file__).parent
NOUNS = {
    name: kind.__module__.split(".")[2]
    for kind in Verbs.__mro__
    if kind.__module__.startswith("detent.")
    for name in vars(kind)
    if not name.startswith("_")
}
"""Every verb, and the noun in whose folder of detent.store it is declared."""


def test_every_verb_is_in_the_catalogue_and_nothing_else() -> None:
    assert set(CATALOGUE) == set(NOUNS)
    assert all(verb.name == name for name, verb in CATALOGUE.items())
    assert all(issubclass(error, DetentError) for verb in CATALOGUE.values() for error in verb.refuses)


def test_every_verb_has_its_module_of_tests_in_the_folder_of_its_noun() -> None:
    missing = [
        f"{noun}/test_{name}.py" for name, noun in NOUNS.items() if not (HERE / noun / f"test_{name}.py").exists()
    ]
    assert missing == []


def test_what_a_verb_refuses_is_tried_in_its_module() -> None:
    """Each refusal the catalogue names is asserted where the verb is tested."""
    missing = [
        f"{verb.name}: {error.__name__}"
        for verb in CATALOGUE.values()
        for error in verb.refuses
        if not any(error.__name__ in path.read_text() for path in HERE.glob(f"*/test_{verb.name}*.py"))
    ]
    assert missing == []


def test_contract_tests_know_no_backend_and_skip_nothing() -> None:
    """What holds on one database holds on the other, so no test here may tell them apart."""
    forbidden = re.compile(r"sqlite|postgres|psycopg|is_sqlite|\bskip(if)?\b|xfail", re.IGNORECASE)
    found = [
        f"{path.name}: {match[0]}"
        for path in HERE.rglob("*.py")
        if path != Path(__file__)
        for match in forbidden.finditer(path.read_text())
    ]
    assert found == []


def test_a_store_is_complete(store: Store) -> None:
    for name in NOUNS:
        assert callable(getattr(store, name))
    assert store.name
