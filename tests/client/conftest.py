"""A shop on each database in turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.app.shop import Shop, open_shop


@pytest.fixture
def shop(store_url: str) -> Iterator[Shop]:
    """A small application on a throw-away database, whose clock the test turns."""
    with open_shop(store_url) as shop:
        yield shop
