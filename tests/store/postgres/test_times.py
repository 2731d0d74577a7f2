"""The time of a move that had to wait for another move of the same job."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from detent.model.records import Cancelled, Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock, plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import enqueue
from tests.deadlines import scaled, until
from tests.store.postgres.connections import run_sql

_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def store_and_clock(postgres_store_url: str) -> Iterator[tuple[Store, StoreClock]]:
    with turnable_store(postgres_store_url) as pair:
        yield pair


@pytest.mark.parametrize("verb", ["cancel", "move"])
def test_it_is_not_earlier_than_the_move_it_waited_for(
    store_and_clock: tuple[Store, StoreClock], postgres_store_url: str, verb: str
) -> None:
    """R2: it was on record with the time of its call, and verify reported times that are not in order."""
    store, clock = store_and_clock
    job_id = enqueue(store)
    store.job_cancel([job_id], "ana")

    def move() -> Any:
        (answer,) = (
            store.job_cancel([job_id], "bob") if verb == "cancel" else store.job_move([job_id], "other", None, "bob")
        )
        return answer

    with closing(plain_connection(postgres_store_url)) as other, ThreadPoolExecutor(1) as thread:
        other.execute("SELECT 1 FROM detent.job FOR UPDATE")
        waiting = thread.submit(move)
        until(lambda: run_sql(postgres_store_url, _WAITS))
        clock.advance(10)
        other.execute("SELECT * FROM detent.job_retry_v2(ARRAY[%s::bigint], 'ana', NULL, false)", (job_id,))
        other.commit()
        assert isinstance(waiting.result(scaled(60)), Cancelled if verb == "cancel" else Moved)
    assert [line.trigger for line in store.transitions("job", str(job_id))][-2:] == ["retry", verb]
    assert store.verify() == []
