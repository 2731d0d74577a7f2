"""Lanes are made ahead of a caller's transaction."""

from __future__ import annotations

from contextlib import closing

from detent.model.records import Enqueued
from detent.testing.stores import another_store, plain_connection
from tests.contract.kit import new_job


def test_a_callers_open_transaction_keeps_nobody_from_a_new_lane(postgres_store_url: str) -> None:
    """J2: a lane made inside the caller's transaction would let everybody else who needs it wait until its end."""
    with closing(another_store(postgres_store_url)) as store, closing(plain_connection(postgres_store_url)) as caller:
        first = new_job(store, queue="brand-new")
        assert store.on(caller).job_enqueue([first]) == [Enqueued(first.id, True)]
        second = new_job(store, queue="brand-new")
        assert store.job_enqueue([second]) == [Enqueued(second.id, True)]
        caller.rollback()
        assert store.job_get([first.id]) == [None]
