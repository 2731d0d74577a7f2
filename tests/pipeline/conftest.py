"""The tests of pipelines on a throw-away database of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from detent.testing.harness import Harness
from detent.testing.stores import row_violations


@pytest.fixture
def harness(store_url: str) -> Iterator[Harness]:
    """An application's database, its clock, and a worker that works when it is told to."""
    with closing(Harness(store_url)) as opened:
        yield opened
        assert row_violations(opened.store, store_url) == []
