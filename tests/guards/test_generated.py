"""Guards, CHECKs and functions list no states or moves of their own: they are filled in from the lifecycles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import detent.store
from detent.lifecycle.library import JOB, LIBRARY
from detent.store.lifecycle_sql import filled, placeholders, values
from detent.store.sql_files import Dialect

STORE = Path(detent.store.__file__).parent
PAIR = re.compile(r"OLD\.state = '(\w+)' AND NEW\.state = '(\w+)'")


def texts(dialect: Dialect) -> list[tuple[str, str]]:
    return [
        (str(file.relative_to(STORE)), file.read_text(encoding="utf-8"))
        for file in sorted(STORE.rglob("*.sql"))
        if (path := file.relative_to(STORE).as_posix())
        and (dialect in path or "queries" in path or (dialect == "postgres" and "functions" in path))
    ]


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_every_value_is_known(dialect: Dialect) -> None:
    """L1: one declaration drives the database's own enforcement; a value with a wrong name is found here."""
    used = {name for _, text in texts(dialect) for name in placeholders(text)}
    assert used <= values(dialect).keys()
    assert {f"{name}.state_known" for name in ("job", "batch_run", "target", "pipeline_run", "partition")} <= used
    assert all("{{" not in filled(text, dialect) for _, text in texts(dialect))


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_no_guard_lists_moves_of_its_own(dialect: Dialect) -> None:
    """L1: a pair that is written out would stay behind when the lifecycle changes."""
    written = {(file, *pair) for file, text in texts(dialect) if "_guards" in file for pair in PAIR.findall(text)}
    # Dropping a result that is too old changes no state.
    assert {(source, target) for _, source, target in written} <= {("succeeded", "succeeded")}


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_the_guards_have_every_declared_move(dialect: Dialect) -> None:
    """L1, L2"""
    found = values(dialect)
    assert {tuple(pair) for pair in PAIR.findall(found["job.logged"])} == set(JOB.logged_pairs())
    for name in ("batch_run", "pipeline_run", "partition"):
        assert {tuple(pair) for pair in PAIR.findall(found[f"{name}.pairs"])} == set(LIBRARY[name].pairs)
        assert all(f"{state}" in found[f"{name}.state_known"] for state in LIBRARY[name].states)
    folds = {fold.pair for fold in LIBRARY["target"].folds}
    assert {tuple(pair) for pair in PAIR.findall(found["target.shown"])} == set(LIBRARY["target"].pairs) | folds
