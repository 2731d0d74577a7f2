"""claim_find: a claim whose answer was lost is looked up, not repeated."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, commit, enqueue, finish
from tests.contract.refusals import Untouched


def test_what_was_claimed_is_found_under_its_lease(store: Store, untouched: Untouched) -> None:
    """G7: the worker adopts what it holds, in the same words."""
    for n in range(3):
        enqueue(store, payload=str(n), correlation_id=f"c{n}", tenant="acme")
    lease_id, other = store.ids_reserve(1), store.ids_reserve(1)
    claimed = claim(store, lease_id=lease_id, limit=2)
    claim(store, lease_id=other)
    with untouched():
        found = store.claim_find(lease_id)
    assert sorted(found, key=lambda held: held.job_id) == claimed


def test_only_what_is_still_held(store: Store, clock: StoreClock) -> None:
    for _ in range(4):
        enqueue(store)
    lease_id = store.ids_reserve(1)
    done, failed, committed, open_ = claim(store, lease_id=lease_id)
    finish(store, done)
    abort(store, failed)
    store.job_commit(commit(committed))
    found = {held.job_id: held.committed for held in store.claim_find(lease_id)}
    assert found == {committed.job_id: True, open_.job_id: False}
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    assert store.claim_find(lease_id) == []


def test_a_lease_that_never_was(store: Store) -> None:
    assert store.claim_find(store.ids_reserve(1)) == []
