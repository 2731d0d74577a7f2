"""Around every contract test: a record that is healthy in the end, and a watch for "nothing was changed"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from detent.store.contract import Store
from detent.testing.stores import Dumps
from tests.contract.batches.sample_batch_runs import broken
from tests.contract.refusals import Untouched
from tests.reused_databases import ReusedDatabase


@pytest.fixture(name="store")
def store_that_ends_healthy(store: Store, store_url: str, reused_database: ReusedDatabase | None) -> Iterator[Store]:
    """The store of the house; whatever a test did to it, every invariant holds in the end (R2)."""
    yield store
    assert broken(store, store_url, reused_database) == []


@pytest.fixture
def untouched(store_url: str) -> Untouched:
    """`with untouched():` around calls that must not change a single row."""

    @contextmanager
    def watch() -> Iterator[None]:
        with closing(Dumps(store_url)) as take:
            before = take()
            yield
            assert take() == before

    return watch
