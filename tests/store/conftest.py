"""A writer, and a crowd that uses it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from detent.model.clock import TurnableClock
from detent.store.contract import Store
from detent.store.enqueue_writer import EnqueueWriter
from tests.store.writing import Watched


@pytest.fixture
def watched(store: Store) -> Any:
    return Watched(store)


@pytest.fixture
def writer(watched: Any) -> Iterator[EnqueueWriter]:
    writer = EnqueueWriter(watched, clock=TurnableClock())
    yield writer
    writer.close()


@pytest.fixture
def crowd() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=32) as crowd:
        yield crowd
