"""identity_renew: other effect keys for what is enqueued from now on."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import enqueue


def test_it_holds_for_new_ids_and_is_on_record(store: Store, clock: StoreClock) -> None:
    """C5, E4: ids that were reserved before keep the old one."""
    before = enqueue(store)
    (first,) = store.identity_list()
    clock.advance(5)
    second = store.identity_renew("ana", "restored into a copy")
    after = enqueue(store)
    assert store.identity_list() == [first, second]
    assert (second.n, second.made_by, second.reason, second.made_at) == (2, "ana", "restored into a copy", clock.now())
    assert before < second.first_id <= after
    assert second.identity != first.identity
    assert (store.identity_of(before), store.identity_of(after)) == (first.identity, second.identity)
    (line,) = store.transitions("database", "identity")
    assert (line.from_state, line.to_state, line.trigger) == (first.identity, second.identity, "renew")
    assert (line.actor, line.reason, line.at) == ("ana", "restored into a copy", clock.now())


def test_again_makes_another(store: Store) -> None:
    """C5: each renewal has ids of its own, also where nothing was enqueued in between."""
    made = [store.identity_renew("ana") for _ in range(3)]
    assert [one.n for one in made] == [2, 3, 4]
    assert len({one.identity for one in store.identity_list()}) == 4
    assert len({one.first_id for one in store.identity_list()}) == 4
