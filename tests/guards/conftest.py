"""A person at the prompt of the database, without Detent in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from detent.store.contract import Store
from tests.guards.prompt import Prompt


@pytest.fixture
def prompt(store: Store, store_url: str) -> Iterator[Prompt]:
    """sqlite3's or psql's prompt on the database of `store`."""
    with closing(Prompt(store_url)) as opened:
        yield opened
