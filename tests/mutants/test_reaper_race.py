"""A renewal that is under way when the reaper comes."""

from __future__ import annotations

from contextlib import closing

import psycopg

from detent.model.records import Finished, Reaped, Renewal
from detent.testing.stores import plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import LEASE, claim_one, enqueue, finish


def test_a_lease_that_is_just_being_renewed_is_not_reaped(postgres_store_url: str) -> None:
    """J5, J6: expired by what everybody can see, renewed by a transaction that has not committed yet."""
    with psycopg.connect(postgres_store_url, autocommit=True) as owner:
        # A reaper that waits for the renewal, instead of passing it over, is told so.
        owner.execute(f"ALTER DATABASE {owner.info.dbname} SET lock_timeout = '100ms'")
    with turnable_store(postgres_store_url) as (store, clock), closing(plain_connection(postgres_store_url)) as other:
        enqueue(store)
        lease_id = store.ids_reserve(1)
        held = claim_one(store, lease_id=lease_id)
        clock.advance(LEASE + 1)
        assert store.on(other).lease_renew([lease_id], LEASE) == [Renewal(lease_id, True)]
        assert store.lease_reap(10) == Reaped()
        other.commit()
        assert store.lease_reap(10) == Reaped()
        assert finish(store, held) == Finished(held.job_id, held.attempt)
