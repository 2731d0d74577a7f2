"""Pages of the file that were damaged are found, and harm no other part of the check."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from detent.store.open import open_store
from tests.store.invariants.conftest import Lived
from tests.store.invariants.pages import PAGES, PAGES_BESIDE_JOBS, PageDamage, spoil_page
from tests.store.invariants.walking import walked


@pytest.mark.parametrize("damage", [*PAGES, *PAGES_BESIDE_JOBS], ids=lambda damage: damage.name)
def test_a_damaged_page_is_found(lived_sqlite: Lived, tmp_path: Path, damage: PageDamage) -> None:
    """R3, G1: by `verify`, under a stable name. Neither it nor the walk is stopped; `repair` leaves it to a person."""
    path = tmp_path / "t.db"
    shutil.copy(lived_sqlite.place, path)
    spoil_page(path, damage)
    with closing(open_store(f"sqlite:///{path}")) as store:
        found = {(one.invariant, one.entity, one.entity_id) for one in store.verify()}
        assert ("storage_is_sound", "file", "database") in found
        walked(store, 100)
        assert [step for step in store.repair("ana", "it was damaged", apply=True) if step.can] == []


def test_a_copy_of_a_live_database_is_healthy(lived_sqlite: Lived, tmp_path: Path) -> None:
    """R2: leases expired while nobody could reap them, since no worker has lived in the copy."""
    path = tmp_path / "copy.db"
    shutil.copy(lived_sqlite.place, path)
    with closing(open_store(f"sqlite:///{path}")) as store:
        assert store.verify() == []
        assert walked(store, 100) == []
