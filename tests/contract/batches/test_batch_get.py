"""batch_get: a run as it stands."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import create


def test_a_run_by_its_id(store: Store) -> None:
    made = create(store, tenant="acme", tolerate_share=0.25, metadata="[1]")
    assert store.batch_get(made.id) == made
    assert (made.tenant, made.tolerate_share, made.metadata) == ("acme", 0.25, "[1]")
    assert store.batch_get(made.id + 999) is None
