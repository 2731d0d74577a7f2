"""batch_list: runs that fit, the newest first."""

from __future__ import annotations

from detent.model.batch_records import BatchFilter
from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import act, create, previewed_run


def ids(store: Store, **fits: str) -> list[int]:
    """The runs that fit."""
    return [row.id for row in store.batch_list(BatchFilter(**fits))]


def test_runs_that_fit(store: Store) -> None:
    queued = previewed_run(store)
    act(store, queued.id)
    other = create(store, batch="archive")
    acme = create(store, tenant="acme")
    assert ids(store) == [acme.id, other.id, queued.id]
    assert ids(store, batch="archive") == [other.id]
    assert ids(store, tenant="acme") == [acme.id]
    assert ids(store, state="queued") == [queued.id]


def test_a_page_at_a_time(store: Store) -> None:
    made = [create(store).id for _ in range(3)]
    (first,) = store.batch_list(BatchFilter(), limit=1)
    assert first.id == made[2]
    assert [row.id for row in store.batch_list(BatchFilter(), before_id=first.id)] == [made[1], made[0]]
