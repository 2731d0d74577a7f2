"""A throw-away database of each kind, with a clock to turn and a worker that works when it is told to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from detent.testing.harness import Harness


@pytest.fixture
def detent(store_url: str) -> Iterator[Harness]:
    harness = Harness(store_url)
    yield harness
    harness.close()
