"""In which order a limit and those of its keys are locked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from detent.model.limit_records import NewLimit
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.stores import plain_connection
from tests.contract.jobs.sample_jobs import succeeded
from tests.deadlines import scaled, until
from tests.store.postgres.connections import run_sql

_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
_LOCK = "SELECT 1 FROM detent.rate_limit WHERE key = %s FOR UPDATE NOWAIT"
LIMIT = NewLimit(key="mail.send", concurrency_max=1, tasks=("mail.send",))


@pytest.fixture
def store(postgres_store_url: str) -> Iterator[Store]:
    with closing(open_store(postgres_store_url)) as store:
        yield store


@pytest.mark.parametrize(
    "change", [lambda store: store.limit_put(LIMIT), lambda store: store.limit_remove("mail.send", "ana")]
)
def test_a_limit_is_locked_before_those_of_its_keys(
    store: Store, postgres_store_url: str, change: Callable[[Store], Any]
) -> None:
    """R4: a claim locks them in that order; a change of the limit locked them by name, and the two could deadlock."""
    store.limit_put(LIMIT)
    succeeded(store, limit_key="a")
    with closing(plain_connection(postgres_store_url)) as claiming, ThreadPoolExecutor(1) as thread:
        claiming.execute(_LOCK, ("mail.send",))
        work = thread.submit(change, store)
        until(lambda: run_sql(postgres_store_url, _WAITS))
        claiming.execute(_LOCK, ("a",))
        claiming.commit()
        work.result(scaled(60))
