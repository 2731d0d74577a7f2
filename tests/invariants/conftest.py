"""A healthy database after a mixed life, and the owner who is about to spoil it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.invariants.life import Life, live
from tests.invariants.owner import Owner


@pytest.fixture
def life(store: Store, clock: StoreClock) -> Life:
    """Every kind of job, on each database in turn."""
    return live(store, clock)


@pytest.fixture
def owner(store: Store, store_url: str) -> Iterator[Owner]:
    """A raw connection to the database of `store`."""
    with closing(Owner(store_url)) as someone:
        yield someone
