"""token_revoke: for good, and on record."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock
from tests.contract.refusals import Untouched, refused
from tests.contract.tokens.sample_tokens import new_token, record_of


def test_it_is_revoked(store: Store, clock: StoreClock) -> None:
    item = new_token(store)
    store.token_create(item)
    clock.advance(5)
    assert store.token_revoke("ana", "carol", "left the company") == Moved("ana", "revoked", True)
    row = store.token_find(item.hash)
    assert row is not None
    assert row.revoked_at is not None
    assert ((row.revoked_at - START).total_seconds(), row.revoked_by) == (5, "carol")
    assert record_of(store)[-1] == ("usable", "revoked", "revoke", "carol", "left the company")


def test_revoking_again_changes_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3"""
    store.token_create(new_token(store))
    store.token_revoke("ana", "carol")
    clock.advance(1)
    with untouched():
        assert store.token_revoke("ana", "dave") == Moved("ana", "revoked", False)
        refused(store.token_revoke("nobody", "dave"), NotFound, entity="token", entity_id="nobody")


def test_of_two_tokens_of_a_name_the_usable_one_is_revoked(store: Store) -> None:
    old, new = new_token(store), new_token(store)
    store.token_create(old)
    store.token_revoke("ana", "carol")
    store.token_create(new)
    store.token_revoke("ana", "dave")
    assert [row and row.revoked_by for row in map(store.token_find, (old.hash, new.hash))] == ["carol", "dave"]
