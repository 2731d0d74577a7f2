"""A healthy database breaks no invariant, and repair leaves it alone."""

from __future__ import annotations

from contextlib import closing

import pytest

from detent.errors import InvalidInput
from detent.lifecycle.library import JOB
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.stores import dump
from tests.store.invariants.life import Life


def test_a_database_after_a_mixed_life_is_healthy(store: Store, life: Life) -> None:
    """R2: whatever jobs have met, no invariant is broken; and they have met every state."""
    assert store.verify() == []
    assert {count.state for count in store.counts()} == set(JOB.states)


def test_an_empty_database_is_healthy(database_url: str) -> None:
    """R3: checked on load, before anything has happened."""
    with closing(open_store(database_url)) as store:
        store.ready()
        assert store.verify() == []


@pytest.mark.parametrize("apply", [False, True])
def test_repair_of_a_healthy_database_does_nothing(store: Store, store_url: str, life: Life, apply: bool) -> None:
    """R3: an empty plan, and not a row is touched."""
    before = dump(store_url)
    assert store.repair("ana", "to be sure", apply=apply) == []
    assert dump(store_url) == before


@pytest.mark.parametrize(("actor", "reason"), [("", "why"), ("ana", " ")])
def test_repair_needs_an_actor_and_a_reason(store: Store, actor: str, reason: str) -> None:
    """E4: nothing is repaired without saying who and why."""
    with pytest.raises(InvalidInput):
        store.repair(actor, reason, apply=True)
