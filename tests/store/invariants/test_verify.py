"""Each invariant is proven to fire: planted corruption is found and named, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from detent.store.contract import Store
from detent.store.invariants import load
from detent.store.invariants.stepwise_check import UNWALKED
from tests.store.invariants.cases import CASES, Corruption, pairs
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner
from tests.store.invariants.walking import walked


@pytest.mark.parametrize(("kind", "case"), pairs(CASES), indirect=["kind"])
def test_corruption_is_found_and_named(store: Store, life: Life, owner: Owner, case: Corruption) -> None:
    """R2, R3: the invariant that was broken, and the row that breaks it; all at once, and a few jobs at a time. The
    copy was healthy before: tests/store/invariants/test_healthy.py."""
    case.plant(owner, life)
    wanted = (case.invariant, *case.named(owner, life))
    # A step on PostgreSQL costs as much as ten on SQLite.
    looks = (
        [store.verify()] if case.invariant in UNWALKED else [store.verify(), walked(store, 4 if owner.sqlite else 16)]
    )
    for violations in looks:
        assert wanted in {(one.invariant, one.entity, one.entity_id) for one in violations}


def test_every_invariant_has_its_corruption() -> None:
    """R2: no invariant that never fires, on either database."""
    names = {invariant.name for invariant in load("sqlite")}
    for kind in ("sqlite", "postgres"):
        assert {case.invariant for case in CASES if case.only in (None, kind)} == names


def test_both_databases_have_the_same_invariants() -> None:
    """R2: the same names, and each is one statement that says what must hold."""
    assert [invariant.name for invariant in load("postgres")] == [invariant.name for invariant in load("sqlite")]
    for dialect in ("postgres", "sqlite"):
        for invariant in load(dialect):
            assert invariant.sql.startswith("-- "), invariant.name
            assert invariant.sql.rstrip().endswith(";"), invariant.name


def test_every_invariant_is_documented() -> None:
    """R2: the page lists them all, and no others."""
    page = (Path(__file__).parents[3] / "docs" / "invariants.md").read_text(encoding="utf-8")
    listed = [row.split("`")[1] for row in page.splitlines() if row.startswith("| `")]
    assert listed == [invariant.name for invariant in load("sqlite")]
